#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Raises `low`, by what blocks of a level can hold, to at most `high`, and only if that raises it
// above `useful`. `sets` are all that a block runs within `high` of bundles above a small area.
[[nodiscard]] Nanoseconds cover_bound(const BundleTable& table, std::int32_t num_ranks,
                                      std::int32_t level, const std::vector<BundleSet>& sets,
                                      double small, Nanoseconds low, Nanoseconds high,
                                      Nanoseconds useful);

}  // namespace isochron
