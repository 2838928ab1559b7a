#pragma once

#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The exchange that is cheapest for a group; none if the cost model leaves no choice.
[[nodiscard]] std::optional<ContextKind> cheapest_exchange(const StepPlan& plan,
                                                           const ContextGroup& group);

// Writes slots of items as micro-batches of sequences into the plan, with the cheapest exchange of
// every group where there is a choice.
void set_slots(const Problem& problem, const DraftSlots& slots, StepPlan& plan);

// Predicted time, imbalance and memory of the micro-batches, from the simulator.
void set_prediction(StepPlan& plan);

// Bytes over the limit on activations that the plan holds with these slots, which it then has. 0 if
// there is no limit: then it is left alone.
[[nodiscard]] std::int64_t excess_with(const Problem& problem, const DraftSlots& slots,
                                       StepPlan& plan);

}  // namespace isochron
