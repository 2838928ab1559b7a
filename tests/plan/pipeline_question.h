#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/core/random.h"
#include "isochron/plan/plan.h"

namespace isochron {

// One token costs 3 ns, a micro-batch 1 ns, nothing is quadratic; a group of any size shares both
// without traffic.
inline CostModel simple_cost() {
  return {.name = "simple",
          .quadratic_ns = 0,
          .linear_ns = 3,
          .microbatch_ns = 0,
          .forward_share = 1.0 / 3,
          .context = {{.kind = ContextKind::all_gather_kv,
                       .bytes_per_token = 0,
                       .links = {{1 << 20, 100, 0}}}},
          .activation_bytes_per_token = 1};
}

inline Batch batch_of(std::vector<Tokens> lengths) {
  Batch batch;
  batch.lengths = std::move(lengths);
  return batch;
}

inline StepPlan checked_plan(const Batch& batch, const Topology& topology, const CostModel& cost,
                             const PlanOptions& options) {
  StepPlan plan = plan_step(batch, topology, cost, options);
  EXPECT_EQ(find_violation(to_json(plan), &batch), std::nullopt);
  return plan;
}

inline bool has_plan(const StepPlan& plan) { return !plan.microbatches.empty(); }

// Virtual stages, transfers and unequal chunks, now and then.
inline void set_shape(Random& random, PipelineShape& shape) {
  if (random.below(3) == 0) {
    shape.virtual_ = 2;
    shape.group = shape.stages;
  }
  if (random.below(4) == 0) shape.transfer_ns = random.between(0, 20'000'000);
  if (random.below(4) == 0) {
    std::vector<double> weights(static_cast<std::size_t>(shape.num_chunks()));
    for (double& weight : weights) weight = 0.5 + random.unit();
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const double weight : weights) shape.shares.push_back(weight / sum);
  }
}

}  // namespace isochron
