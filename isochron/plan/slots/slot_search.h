#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A plan in slots: groups of disjoint ranks that run side by side.
struct SlotDraft {
  std::vector<std::vector<DraftGroup>> slots;
  Nanoseconds time = 0;  // sum over slots of the slowest group
};

// A step in which all ranks wait for each other after every slot. Every bundle fits some size. Ends
// at `bound`, or when `work` is used up, or soon, maybe without slots, if it gets nowhere near a
// step of `known` time. Ranks may stay empty in a slot.
[[nodiscard]] SlotDraft search_slots(const Problem& problem, Nanoseconds bound, std::int64_t work,
                                     Nanoseconds known = std::numeric_limits<Nanoseconds>::max());

// With so much work all is tried that gets far from a poor start, if items are few.
[[nodiscard]] std::int64_t thorough_work(const Problem& problem);

}  // namespace isochron
