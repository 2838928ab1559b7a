#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/problem.h"

// Sets of few items, for dynamic programming over all of them.

namespace isochron {

using ItemSet = std::uint32_t;  // of items, or of bundles

constexpr Nanoseconds cannot_run = std::numeric_limits<Nanoseconds>::max() / 4;

[[nodiscard]] std::vector<ItemId> items_of(ItemSet set);

// What every set of items costs on a group; cannot_run if it cannot run there.
struct SetCosts {
  std::vector<Nanoseconds> one;    // in one micro-batch
  std::vector<Nanoseconds> all;    // in the best micro-batches
  std::vector<ItemSet> first_bin;  // one of these
};

// Every bundle is one item, no rank is slow, and some exchange admits the group.
[[nodiscard]] SetCosts set_costs(const Problem& problem, RankRange ranks);

}  // namespace isochron
