#pragma once

#include "isochron/engine/execute/engine.h"
#include "tests/engine/support/random_rows.h"
#include "tests/engine/support/tiny_model.h"

// The central property: loss, every gradient, per-token outputs and the updated weights do not
// depend on the plan.
//
// The reference is fp64, one rank, one sequence at a time. Where the engine runs in fp32 a gradient
// may differ from it by 1e-5 of the largest one of its tensor, or by 3e-5 where ranks share
// sequences and merge blocks; where it runs in fp64, with fp32 sums of gradients and fp32 masters,
// by 5e-6. The loss may differ by 1e-6 of itself.
// An AdamW with a large epsilon makes weights depend on gradients smoothly, and on their scale.

namespace isochron {

[[nodiscard]] TokenLoss negative_log_prob();

struct PlanCase {
  TinyModel model;
  StepPlan plan;
  TokenRows rows;
  ContextOptions context = {};
  double dropout = 0;
};

// Three updates with one plan, each with masks of its own, then evaluation and scores, without any;
// called by every rank.
void train_and_compare(World& world, const PlanCase& given);

}  // namespace isochron
