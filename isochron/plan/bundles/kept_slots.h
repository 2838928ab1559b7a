#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A step in which all ranks wait for each other after every slot, and bundles of several items stay
// on their ranks. Ranks may stay empty in a slot. Ends at `bound`, or when `work` is used up.
[[nodiscard]] DraftSlots search_kept_slots(const Problem& problem, Nanoseconds bound,
                                           std::int64_t work);

}  // namespace isochron
