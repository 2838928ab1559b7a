#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/steps/skyline.h"
#include "isochron/plan/steps/wide_groups.h"

namespace isochron {

// Takes bundles of one item out of `narrow` (dearest first, which it stays) and runs them on single
// ranks within `gaps`. The micro-batches come with their times, which keep to the gaps.
[[nodiscard]] std::vector<WideGroup> fill_gaps(const Problem& problem, std::vector<Gap> gaps,
                                               std::vector<BundleId>& narrow, std::int64_t& work);

}  // namespace isochron
