#pragma once

#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/step_plan.h"
#include "isochron/step/topology.h"

namespace isochron {

// Plans one step: which ranks run which sequences, with whom, in which order, so that the last rank
// finishes as early as the search can make it. The plan carries a lower bound that no plan under
// the same options beats, and is optimal if it meets it.
//
// Lengths over the capacity, counts that cannot be filled and the like are outcomes (`status`,
// `reason`), decided by the policies in `options`. Throws std::invalid_argument for what
// require_valid() and resolved() reject, an empty batch, and a cost or a total above 2^62. Equal
// inputs give equal bytes on every machine. Every static context size that the mode admits is
// tried: with free counts and no kept groups no plan is slower, by the cost model, than the best of
// them.
[[nodiscard]] StepPlan plan_step(const Batch& batch, const Topology& topology,
                                 const CostModel& cost, const PlanOptions& options = {});

}  // namespace isochron
