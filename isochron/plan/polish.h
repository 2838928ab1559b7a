#pragma once

#include <cstdint>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/second_look.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The slots of few items, annealed, which finds what the searches, made for many, miss: with that
// effort, and unless it was asked for within a small part of a step of `bound`, smaller for a rough
// answer. The slots as they are of more items. Never worse than they.
[[nodiscard]] DraftSlots polished(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                                  Answer answer, std::int64_t effort, Nanoseconds bound);

}  // namespace isochron
