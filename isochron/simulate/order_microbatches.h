#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/core/status.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A micro-batch of one pipeline.
struct PipelineItem {
  PassCost cost;
  double activation_bytes = 0;  // of one rank, over all chunks
};

struct OrderOptions {
  Pass pass = Pass::train;
  std::int64_t max_activation_bytes = 0;  // of the slots in flight on a stage; 0: no limit
  std::int64_t max_work = 60'000'000;     // operations simulated; about 1 ns each
  std::int64_t bound_work = 60'000'000;   // as many for a better bound; 0: a quick one will do
};

struct MicrobatchOrder {
  // optimal: the time meets the bound, or all orders were tried; infeasible: proved that no order
  // keeps the limit; unknown: none was found that does.
  Status status = Status::unknown;
  std::vector<std::int32_t> order = {};  // what each slot runs; empty if infeasible or unknown
  Nanoseconds time_ns = 0;               // 2^62 + 1 for anything above 2^62
  Nanoseconds lower_bound_ns = 0;        // no order is faster; equal to time_ns if optimal
};

// In which order one pipeline (a rank, or a static group, whose members keep step) best runs its
// micro-batches. Among the orders that keep the limit never slower than that of the input, nor than
// small_ends() of the costs. Throws what pipeline_schedule() throws. Equal inputs give equal orders
// on every machine.
[[nodiscard]] MicrobatchOrder order_microbatches(std::span<const PipelineItem> items,
                                                 const PipelineShape& shape,
                                                 const OrderOptions& options = {});

// The same for the slots of a whole plan, which all ranks run in one order: the time is that of
// simulate() with the slots in this order, and every rank keeps options.max_activation_bytes of the
// plan. Where contexts are static and ranks do not wait for each other, every group may order its
// own micro-batches instead, which is better. Throws what simulate() throws for costs above 2^62.
[[nodiscard]] MicrobatchOrder order_slots(const StepPlan& plan, std::int64_t max_work);

}  // namespace isochron
