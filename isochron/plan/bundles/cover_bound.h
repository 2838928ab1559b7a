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

// Whether no step is shorter than `time`, by all sets of at most 64 bundles that a block of a level
// can hold. These are found as they are needed (dear_sets.h), and it is given up after so much
// work.
[[nodiscard]] bool is_least_by_covers(const BundleTable& table, std::int32_t num_ranks,
                                      std::int32_t level, Nanoseconds time, std::int64_t work);

}  // namespace isochron
