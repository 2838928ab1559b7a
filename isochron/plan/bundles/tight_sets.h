#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Bundles that share a group.
using TightSet = std::vector<BundleId>;

// Disjoint sets, a group each, on groups of one level and of the next one.
struct TightSets {
  std::vector<TightSet> narrow;
  std::vector<TightSet> wide;
  Nanoseconds time = 0;  // of the step, if the rest were even on the ranks that are left
};

// Which bundles are asked for.
struct TightQuestion {
  std::int32_t level = 0;             // of narrow groups
  std::span<const BundleId> bundles;  // they fit the next level
  std::int32_t num_groups = 0;        // of the level, that are free
  std::int32_t num_other_groups = 0;  // that run some of the rest
  Nanoseconds taken = 0;              // of all of these together
};

// Sets that fill their groups so well that the step gets short: several choices, the one that
// promises most first. `aim` is about the time of the step. Every set is done within the time of
// its choice. Other answers with every call.
[[nodiscard]] std::vector<TightSets> find_tight_sets(const BundleTable& table,
                                                     const TightQuestion& question, Nanoseconds aim,
                                                     std::int64_t num_trials, Random& random);

}  // namespace isochron
