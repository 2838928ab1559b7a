#pragma once

#include <cstdint>
#include <cstdlib>

namespace isochron {

// How many random instances a test tries: `standard`, or as many times more as
// ISOCHRON_RANDOM_FACTOR in the environment says.
inline std::uint64_t num_instances(std::uint64_t standard) {
  const char* factor = std::getenv("ISOCHRON_RANDOM_FACTOR");
  return factor == nullptr ? standard : standard * std::strtoull(factor, nullptr, 10);
}

}  // namespace isochron
