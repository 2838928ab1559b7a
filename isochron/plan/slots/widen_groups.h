#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Gives ranks that idle in a slot to groups of it that end no later for that, the slowest first. No
// slot gets longer; groups of a slot may change places. Nothing is widened where ranks are slow.
// Whether anything is.
bool widen_groups(const Problem& problem, DraftSlots& slots);

}  // namespace isochron
