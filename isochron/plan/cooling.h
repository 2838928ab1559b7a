#pragma once

#include <cmath>

namespace isochron {

// About 2^-x: exact at integers, straight between them, which takes no function of the mathematical
// library but one that is exact. Others differ between machines in the last bit, and with it plans
// would.
inline double halved(double x) {
  if (x >= 64) return 0;
  const auto times = static_cast<int>(x);
  return std::ldexp(1 - (x - times) / 2, -times);
}

}  // namespace isochron
