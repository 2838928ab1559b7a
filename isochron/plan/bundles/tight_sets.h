#pragma once

#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Two or three bundles.
using TightSet = std::vector<BundleId>;

// Disjoint sets of bundles that a group of the smallest size runs in `least` to `latest`, many of
// them. Pairs first: each time the bundle that has the fewest others left takes the one of those
// that has the fewest itself.
[[nodiscard]] std::vector<TightSet> find_tight_sets(const BundleTable& table, Nanoseconds least,
                                                    Nanoseconds latest);

}  // namespace isochron
