#pragma once

#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/bundles/soft_prices.h"

namespace isochron {

// No step in which ranks wait for the members of their groups only, and every bundle keeps its
// ranks, is shorter. Raises `low`, which is such a bound and not below the fastest time of any
// bundle, to at most `high`, the time of a step.
[[nodiscard]] Nanoseconds rank_bound(const BundleTable& table, std::int32_t num_ranks,
                                     Nanoseconds low, Nanoseconds high);

// The same for many bundles, from prices that are nearly right.
[[nodiscard]] Nanoseconds rank_bound(const BundleTable& table, std::int32_t num_ranks,
                                     Nanoseconds low, Nanoseconds high, const SoftPrices& start);

}  // namespace isochron
