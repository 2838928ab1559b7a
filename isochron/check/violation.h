#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace isochron::check {

using Violation = std::optional<std::string>;  // a broken rule in words; nothing if it holds

// Nothing if `holds`. The arguments are evaluated in any case: keep them cheap.
template <class... Args>
[[nodiscard]] Violation broken_unless(bool holds, fmt::format_string<Args...> message,
                                      Args&&... args) {
  if (holds) return std::nullopt;
  return fmt::format(message, std::forward<Args>(args)...);
}

}  // namespace isochron::check
