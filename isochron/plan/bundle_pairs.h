#pragma once

#include <array>
#include <vector>

#include "isochron/plan/bundle_table.h"

namespace isochron {

using BundlePair = std::array<BundleId, 2>;

// Disjoint pairs of bundles that a group of the smallest size runs in `least` to `latest`, many of
// them: each time the bundle that has the fewest others left takes the one of those that has the
// fewest itself.
[[nodiscard]] std::vector<BundlePair> find_tight_pairs(const BundleTable& table, Nanoseconds least,
                                                       Nanoseconds latest);

}  // namespace isochron
