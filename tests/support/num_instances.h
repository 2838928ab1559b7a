#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace isochron {

// How many random instances a test tries: `standard`, or as many times more as
// ISOCHRON_RANDOM_FACTOR in the environment says.
inline std::uint64_t num_instances(std::uint64_t standard) {
  const char* factor = std::getenv("ISOCHRON_RANDOM_FACTOR");
  return factor == nullptr ? standard : standard * std::strtoull(factor, nullptr, 10);
}

// Under sanitizers a plan takes some twenty times as long: only a sample of the questions is asked,
// and nothing is said of their mean.
#ifdef ISOCHRON_SANITIZE
inline constexpr bool is_sampled = true;
#else
inline constexpr bool is_sampled = false;
#endif

// How many questions a test asks the step planner.
inline std::uint64_t num_asked(std::uint64_t standard) {
  return is_sampled ? (num_instances(standard) + 19) / 20 : num_instances(standard);
}

// The seeds of these questions, and of others that once were answered badly.
inline std::vector<std::uint64_t> seeds_asked(std::uint64_t standard,
                                              const std::vector<std::uint64_t>& others) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < num_asked(standard); ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : others) {
    if (seed >= num_asked(standard)) seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace isochron
