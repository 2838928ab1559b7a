#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Raises `low`, by what blocks of a level can hold, to less than `high`, the time of a step. `sets`
// are all that a block runs within `high`; wider groups are whole. Above cover_bound() where most
// bundles stand on wider groups than a block, and slower.
[[nodiscard]] Nanoseconds knapsack_cover_bound(const BundleTable& table, std::int32_t num_ranks,
                                               std::int32_t level,
                                               const std::vector<BundleSet>& sets, Nanoseconds low,
                                               Nanoseconds high);

}  // namespace isochron
