// The simulator beside the checker's event loop, which shares nothing with it.

#include <gtest/gtest.h>

#include "isochron/check/plan_time.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/simulate/simulate.h"
#include "tests/support/num_instances.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

void expect_agreement(std::uint64_t seed, const RandomPlanShape& shape) {
  StepPlan plan = random_plan(seed, shape);
  const check::PlanTimes times = check::plan_times(check::PlanView(plan));
  const Timeline timeline = simulate(plan);
  ASSERT_EQ(timeline.step_ns, times.step_ns) << "seed " << seed << ": " << to_json(plan);
  ASSERT_EQ(timeline.peak_activation_bytes, times.peak_activation_bytes)
      << "seed " << seed << ": " << to_json(plan);
  set_prediction(plan);
  ASSERT_EQ(plan.predicted_step_ns, times.step_ns) << "seed " << seed << ": " << to_json(plan);
  ASSERT_EQ(plan.peak_activation_bytes, times.peak_activation_bytes)
      << "seed " << seed << ": " << to_json(plan);
  ASSERT_DOUBLE_EQ(plan.imbalance, times.imbalance) << "seed " << seed << ": " << to_json(plan);
}

TEST(SimulateAgainstChecker, RandomPlansTakeTheSameTimeAndMemory) {
  for (std::uint64_t seed = 0; seed < num_instances(3000); ++seed) expect_agreement(seed, {});
}

TEST(SimulateAgainstChecker, PipelinesTakeTheSameTimeAndMemory) {
  for (std::uint64_t seed = 0; seed < num_instances(500); ++seed) {
    for (const Sync sync : {Sync::step, Sync::microbatch}) {
      expect_agreement(seed, {.sync = sync, .stages = 2, .virtual_ = 1});
      expect_agreement(seed, {.sync = sync, .stages = 4, .virtual_ = 3, .num_sequences = 80});
    }
  }
}

}  // namespace
}  // namespace isochron
