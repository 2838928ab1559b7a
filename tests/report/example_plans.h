#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/step_plan.h"

namespace isochron {

struct ExampleOptions {
  std::int32_t ranks = 4;
  std::int32_t sequences = 64;
  std::int32_t stages = 1;
  Tokens capacity = 16384;
  std::uint64_t seed = 1;
};

// A plan of long-tailed lengths, good enough to look at: wide groups for what one rank cannot hold,
// then longest first to the rank that is free first. With stages, one sequence per rank and slot.
[[nodiscard]] StepPlan example_plan(const ExampleOptions& options);

// Sets what a plan says of its own timeline, as the planner would.
void set_predictions(StepPlan& plan);

}  // namespace isochron
