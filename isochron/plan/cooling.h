#pragma once

#include <bit>
#include <cstdint>

namespace isochron {

// About 2^-x for x from 0 on: exact at integers, straight between them, which takes no function of
// the mathematical library. Those differ between machines in the last bit, and with it plans would.
inline double halved(double x) {
  if (x >= 64) return 0;
  const auto times = static_cast<int>(x);
  constexpr std::int64_t bias = 1023;
  return (1 - (x - times) / 2) * std::bit_cast<double>((bias - times) << 52);
}

}  // namespace isochron
