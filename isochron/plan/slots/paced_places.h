#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// The same micro-batches, each slot by itself, on ranks that suit them where ranks are not equally
// fast: what takes long on fast ones. Groups keep their sizes and stay aligned where they are. No
// slot ends later; what a rank has in other slots does not count.
[[nodiscard]] DraftSlots with_paced_places(const Problem& problem, DraftSlots slots);

}  // namespace isochron
