#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace isochron {

// Random numbers that are equal on every machine and with every standard library, whose
// distributions are not. SplitMix64 (Steele et al., 2014): 64 bits of state, period 2^64, passes
// BigCrush; any seed is good, and mixing (seed, a, b) into one seed gives independent streams.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio, odd: visits every state
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), without bias; bound >= 1.
  constexpr std::uint64_t below(std::uint64_t bound) {
    std::uint64_t draw = next();
    if (draw < bound) {  // else nothing is rejected, which takes a division to see
      const std::uint64_t reject_below = (0 - bound) % bound;  // 2^64 mod bound
      while (draw < reject_below) draw = next();
    }
    return draw % bound;
  }

  // Uniform in [low, high]; low <= high.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    if (width == ~std::uint64_t{0}) return static_cast<std::int64_t>(next());
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + below(width + 1));
  }

  // Uniform in [0, 1), a multiple of 2^-53.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  template <class Container>
  constexpr void shuffle(Container& container) {
    for (std::size_t i = container.size(); i > 1; --i) {
      using std::swap;
      swap(container[i - 1], container[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace isochron
