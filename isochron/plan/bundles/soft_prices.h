#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Prices of bundles in ranks, which say how well each of them fills a rank beside others, and the
// time of a step for which they hold: about the shortest in which their sum is not above the number
// of ranks.
struct SoftPrices {
  std::vector<double> prices;
  Nanoseconds time = 0;
};

// Such that what a group of the smallest size runs within the time is worth little more than the
// group, and no bundle more than its share of a wide group that is full. They prove nothing by
// themselves. `low` is a bound on the step, and bundles that no group runs within it have no price.
[[nodiscard]] SoftPrices find_soft_prices(const BundleTable& table, std::int32_t num_ranks,
                                          Nanoseconds low);

}  // namespace isochron
