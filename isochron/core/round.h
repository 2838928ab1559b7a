#pragma once

#include <cstdint>

namespace isochron {

// std::llround() of a number from 0 to 2^62, without a call: costs are rounded by the thousand.
[[nodiscard]] inline std::int64_t rounded(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return whole + (number - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

// std::ceil() of such a number.
[[nodiscard]] inline std::int64_t rounded_up(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return whole + (static_cast<double>(whole) < number ? 1 : 0);
}

}  // namespace isochron
