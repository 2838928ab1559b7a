#pragma once

#include <cstdint>
#include <functional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Slots of a question, and the bound that was found with them, for which one that holds, or 0, may
// save the time. A rough answer is one of its own search alone. Of the plan only the question is
// read.
enum class Answer : std::uint8_t { rough, whole };
using SlotsOf = std::function<DraftSlots(const StepPlan& plan, const Problem& problem,
                                         Answer answer, std::int64_t effort, Nanoseconds& bound)>;

// The best of `slots` and what `search` finds for narrower questions: groups of one size, which the
// mode may promise never to be slower than; and, where `slots` end long after `bound`, others whose
// answers are answers to this one. Never worse than `slots`.
[[nodiscard]] DraftSlots second_look(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                                     Nanoseconds bound, std::int64_t effort, const SlotsOf& search);

}  // namespace isochron
