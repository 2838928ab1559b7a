#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A step in which every rank runs equally many micro-batches, and waits for the members of its
// groups only.
[[nodiscard]] DraftSlots search_equal_step(const Problem& problem, Nanoseconds bound,
                                           std::int64_t work);

}  // namespace isochron
