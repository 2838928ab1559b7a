#pragma once

#include <span>
#include <string>
#include <string_view>

// Names of presets, as people type them.

namespace isochron {

// Lower case, blanks as dashes: "RTX 3070 Ti" -> "rtx-3070-ti".
[[nodiscard]] std::string preset_key(std::string_view name);

// Rejects `name` with the nearest of the known names and all of them, on one line.
[[noreturn]] void reject_unknown(std::string_view where, std::string_view noun,
                                 std::string_view name, std::span<const std::string> known);

// A name from outside as a message shows it: quoted, escaped, cut to a readable length.
[[nodiscard]] std::string shown_name(std::string_view name);

// "a, b, c".
[[nodiscard]] std::string joined(std::span<const std::string> names);

}  // namespace isochron
