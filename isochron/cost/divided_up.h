#pragma once

#include <cstdint>

namespace isochron {

// The quotient rounded up, for values of at least 0 and divisors of at least 1.
[[nodiscard]] constexpr std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

}  // namespace isochron
