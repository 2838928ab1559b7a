#include "tests/support/random_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/check/plan_bound.h"

namespace isochron {
namespace {

std::string verdict(const StepPlan& plan) {
  return find_violation(to_json(plan)).value_or("valid");
}

TEST(RandomPlan, IsWhatWasAskedForAndValid) {
  std::uint64_t seed = 0;
  for (const std::int32_t ranks : {1, 2, 6, 7, 16, 97}) {
    for (const char* context : {"static:1", "dynamic", "dynamic:any"}) {
      for (const Sync sync : {Sync::step, Sync::microbatch}) {
        for (const KeepGroups keep : {KeepGroups::none, KeepGroups::rank, KeepGroups::microbatch}) {
          for (const Short short_ : {Short::empty, Short::error, Short::drop}) {
            const StepPlan plan = random_plan(++seed, {.ranks = ranks,
                                                       .context = context,
                                                       .sync = sync,
                                                       .counts = Counts::equal,
                                                       .pass = Pass::train,
                                                       .keep_groups = keep,
                                                       .short_ = short_,
                                                       .tensor_parallel = 2,
                                                       .stages = 2,
                                                       .virtual_ = 2,
                                                       .capacity = 96});
            ASSERT_EQ(verdict(plan), "valid") << "seed " << seed << ": " << to_json(plan);
            EXPECT_EQ(plan.topology.ranks, ranks);
            EXPECT_EQ(plan.topology.capacity, 96);
            EXPECT_EQ(plan.topology.pipeline.num_chunks(), 4);
            EXPECT_EQ(plan.options.context, context);
            EXPECT_EQ(plan.options.sync, sync);
            EXPECT_EQ(plan.options.counts, Counts::equal);
            EXPECT_EQ(plan.options.keep_groups, keep);
            EXPECT_EQ(plan.options.short_, short_);
            EXPECT_EQ(plan.options.tensor_parallel, 2);
          }
        }
      }
    }
  }
}

TEST(RandomPlan, TakesACostModelAndFreeCounts) {
  const CostModel cost = cost_preset("qwen3-8b_h100");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const StepPlan plan = random_plan(
        seed,
        {.counts = Counts::free, .oversize = Oversize::alone, .cost = cost, .num_sequences = 100});
    ASSERT_EQ(verdict(plan), "valid") << "seed " << seed;
    EXPECT_EQ(plan.cost, cost);
    EXPECT_EQ(plan.options.counts, Counts::free);
    EXPECT_EQ(plan.options.oversize, Oversize::alone);
    EXPECT_EQ(plan, random_plan(seed, {.counts = Counts::free,
                                       .oversize = Oversize::alone,
                                       .cost = cost,
                                       .num_sequences = 100}));
  }
}

// A bound that is far below every plan would hold even if it were wrong.
TEST(CheckPlanBound, IsBeatenByNoRandomPlanAndMetByMany) {
  int num_close = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const StepPlan plan = random_plan(seed);
    const check::PlanBound bound = check::plan_bound(check::PlanView(plan));
    ASSERT_LE(bound.step_ns, plan.predicted_step_ns) << "seed " << seed << " from " << bound.from;
    const auto close = static_cast<double>(plan.predicted_step_ns) * (1 - 1e-3);
    if (bound.step_ns > 0 && static_cast<double>(bound.step_ns) > close) ++num_close;
  }
  EXPECT_GT(num_close, 400);
}

// Whoever has a plan and says that there is none.
StepPlan denied(StepPlan plan) {
  plan.status = Status::infeasible;
  plan.reason = "nothing fits";
  plan.microbatches.clear();
  plan.oversized.clear();
  plan.dropped.clear();
  plan.predicted_step_ns = 0;
  plan.lower_bound_ns = 0;
  plan.imbalance = 1;
  std::fill(plan.peak_activation_bytes.begin(), plan.peak_activation_bytes.end(), 0);
  return plan;
}

TEST(RandomPlan, IsMissedWhereItIsDenied) {
  int num_refuted = 0;
  const int num_plans = 400;
  for (std::uint64_t seed = 0; seed < num_plans; ++seed) {
    const auto found = find_violation(to_json(denied(random_plan(seed))));
    if (!found) continue;
    EXPECT_EQ(found->find("status is infeasible, but "), 0u) << *found;
    ++num_refuted;
  }
  std::printf("%d of %d refuted\n", num_refuted, num_plans);
  EXPECT_GT(num_refuted, num_plans / 2);
}

}  // namespace
}  // namespace isochron
