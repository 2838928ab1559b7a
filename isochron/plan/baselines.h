#pragma once

#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/step_plan.h"
#include "isochron/step/topology.h"

// What a step would be without the planner: the "before" of a report. Both take the same batch,
// machine, cost model and capacity as the plan beside them, and its bound.
//
// Groups of ranks are static: those of a static context, and for a dynamic one the best that a user
// without it has, the smallest size that divides the ranks, that the cost model admits and that
// holds the longest sequence (whole prompts where they are kept). Nothing is dropped. Equal counts
// are reached by cutting the longest micro-batches of a group in two, then with placeholders. What
// no group holds stands alone, over the capacity.
//
// `options` of the plan are those that were asked for, but for the context and, of naive_plan(),
// `balance`: find_violation() of isochron/check names the rule that a baseline breaks. Where it
// beats the bound it has none (0). Both throw what plan_step() throws. Equal inputs give equal
// bytes.

namespace isochron {

// Input order: sequence i goes to group i mod N, which packs next-fit in that order. Where
// keep_groups asks for it, prompt group i does, and a micro-batch takes it as a whole.
[[nodiscard]] StepPlan naive_plan(const Batch& batch, const Topology& topology,
                                  const CostModel& cost, const PlanOptions& options = {},
                                  Nanoseconds lower_bound_ns = 0);

// verl 0.9.1: groups by Karmarkar-Karp with equal sizes on the workload 24576 s + s^2, then on each
// its rearrange_micro_batches, with the count agreed over all groups; sequences count padded. It
// knows neither keep_groups nor max_sequences. Where verl raises, the plan has no micro-batches,
// its status is unknown and `reason` is verl's text.
[[nodiscard]] StepPlan verl_plan(const Batch& batch, const Topology& topology,
                                 const CostModel& cost, const PlanOptions& options = {},
                                 Nanoseconds lower_bound_ns = 0);

}  // namespace isochron
