#pragma once

#include <optional>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Writes slots of items as micro-batches of sequences into the plan, with the cheapest exchange of
// every group where there is a choice.
void set_slots(const Problem& problem, const DraftSlots& slots, StepPlan& plan);

// The exchange that is cheapest for a group; none if there is no choice.
[[nodiscard]] std::optional<ContextKind> find_exchange(const StepPlan& plan,
                                                       const ContextGroup& group);

}  // namespace isochron
