#pragma once

#include <cstdint>

namespace isochron {

using Tokens = std::int64_t;
using Nanoseconds =
    std::int64_t;  // predicted cost; a preset without a clock (`verl`) has its own unit

// No cost and no sum of costs exceeds this, so that two of them still add up in 64 bits.
inline constexpr Nanoseconds max_total_cost = std::int64_t{1} << 62;

inline constexpr Tokens max_length = (std::int64_t{1} << 31) - 1;  // of one sequence

inline constexpr std::int32_t max_ranks = 1 << 20;  // more than any machine has: a typing mistake

}  // namespace isochron
