#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// What a loader without a planner does: bundle i runs on group i modulo the groups of the smallest
// size that holds it, and a group closes a micro-batch when its next item has no room. With equal
// counts the ranks with fewer micro-batches split theirs, or idle.
[[nodiscard]] DraftSlots deal_in_order(const Problem& problem);

}  // namespace isochron
