#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/bundles/soft_prices.h"
#include "isochron/plan/bundles/tight_sets.h"

namespace isochron {

// A whole step for many bundles: sets for all of them, of those that are worth nearly the group
// that they fill. `before` is what the groups of the next level have run already, some of them
// nothing; the last wide sets, which may be empty, are for those that have, the one with least
// first. Nothing if no way was found.
[[nodiscard]] std::optional<TightSets> find_priced_sets(const BundleTable& table,
                                                        const TightQuestion& question,
                                                        std::span<const Nanoseconds> before,
                                                        const SoftPrices& prices,
                                                        std::int64_t num_trials, Random& random);

}  // namespace isochron
