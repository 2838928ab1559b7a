#pragma once

#include <cstdint>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_search.h"

namespace isochron {

// A step on ranks of different pace, in which all of them wait for each other after every slot.
// Every item is a bundle and fits some size. Ranks may stay empty in a slot. Ends when `work` is
// used up, but not before it has a step.
[[nodiscard]] SlotDraft search_paced_slots(const Problem& problem, std::int64_t work);

}  // namespace isochron
