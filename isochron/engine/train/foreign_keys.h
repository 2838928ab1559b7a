#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace isochron {

// What to say of a key that verl's SFT trainer knows and isochron does not: why, or where it went.
// None for any other key.
[[nodiscard]] std::optional<std::string> find_foreign_key(std::string_view key);

}  // namespace isochron
