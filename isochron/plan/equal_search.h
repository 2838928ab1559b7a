#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A step in which every rank runs equally many micro-batches, and waits for the members of its
// groups only.
[[nodiscard]] DraftSlots search_equal_step(const Problem& problem, Nanoseconds bound,
                                           std::int64_t work);

// A step in which all ranks wait for each other after every slot, and bundles of several items stay
// on their ranks. Ranks may stay empty in a slot.
[[nodiscard]] DraftSlots search_kept_slots(const Problem& problem, Nanoseconds bound,
                                           std::int64_t work);

}  // namespace isochron
