#pragma once

#include "isochron/plan/problem.h"
#include "isochron/plan/slots.h"

namespace isochron {

// What a loader without a planner does, on groups of the smallest size: bundle i runs on cell i
// modulo the cells that the cost model admits, and a cell closes a micro-batch when its next item
// has no room. With equal counts the cells with fewer micro-batches split theirs, or idle.
[[nodiscard]] DraftSlots deal_in_order(const Problem& problem);

}  // namespace isochron
