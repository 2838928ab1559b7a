#pragma once

#include <cstdint>

#include "isochron/plan/bounds/leaders.h"

// Bounds of steps where all ranks wait for each other after every slot, by what slots hold.

namespace isochron {

// By how much the prices of long bundles may rise so that no slot, however long, holds more than it
// takes: all prices with that are a bound.
[[nodiscard]] double price_surplus(const Problem& problem, Leaders& leaders);

// The same, more of it for more work, in sums: every rank counts in what stands side by side.
[[nodiscard]] double price_program(const Problem& problem, Leaders& leaders, std::int64_t max_work);

// Where groups have one size.
[[nodiscard]] double equal_groups_bound(const Problem& problem, Leaders& leaders);

}  // namespace isochron
