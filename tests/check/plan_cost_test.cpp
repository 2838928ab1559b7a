#include "isochron/check/plan_cost.h"

#include <gtest/gtest.h>

#include "tests/check/plans.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

// 24 tokens on 4 ranks: 6 of work each.
Nanoseconds cost_with(const ContextCost& exchange) {
  const StepPlan plan = wide_plan();
  return check::find_cost_with(check::PlanView(plan), plan.microbatches[0][0], exchange).value();
}

TEST(CheckPlanCost, CountsTheBytesOfAnExchange) {
  ContextCost exchange = {.bytes_per_token = 8, .links = {{4, 2, 0}}};
  EXPECT_EQ(cost_with(exchange), 6);
  exchange.kind = ContextKind::all_gather_kv;
  EXPECT_EQ(cost_with(exchange), 6 + 72);  // 8*24*3/4 bytes, 2 each nanosecond
  exchange.kind = ContextKind::all_to_all;
  EXPECT_EQ(cost_with(exchange), 6 + 18);  // 8*24*3/16
  exchange.overlap = 0.5;
  EXPECT_EQ(cost_with(exchange), 6 + 9);
}

// Worked out twice, the sums agree to the nanosecond.
TEST(CheckPlanCost, AgreesWithTheCostModel) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const StepPlan plan = random_plan(seed);
    const check::PlanView view(plan);
    for (const Slot& slot : plan.microbatches) {
      for (const ContextGroup& group : slot) {
        for (const ContextCost& exchange : plan.cost.context) {
          const auto found = check::find_cost_with(view, group, exchange);
          const auto link = find_link(exchange, group.ranks);
          ASSERT_EQ(found.has_value(), link.has_value());
          if (!link) continue;
          Nanoseconds expected = microbatch_cost(plan.cost) + link_latency(*link);
          for (const SequenceId id : group.sequences) {
            expected += *find_sequence_cost(plan.cost, exchange, group.ranks, view.length_of(id),
                                            view.extra_cost_of(id));
          }
          ASSERT_EQ(*found, expected);
          ++num_compared;
        }
      }
    }
  }
  EXPECT_GT(num_compared, 5000);
}

}  // namespace
}  // namespace isochron
