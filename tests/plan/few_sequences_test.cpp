// Ten sequences of real lengths, where there are any, on 8 ranks: beside the best of all plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "isochron/plan/plan.h"
#include "tests/oracle/best_plan.h"
#include "tests/plan/real_lengths.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

struct Ratios {
  double mean = 0;
  double max = 0;
};

// Prediction over optimum of the first batches of ten.
Ratios ratios_of(const RealLengths& source, std::size_t most_batches, const PlanOptions& options) {
  constexpr std::size_t count = 10;
  const std::size_t num_batches =
      std::min(is_sampled ? 1 : most_batches, source.lengths.size() / count);
  const Topology topology{.ranks = 8, .capacity = 16'384};
  Ratios ratios;
  for (std::size_t i = 0; i < num_batches; ++i) {
    SCOPED_TRACE(testing::Message() << source.name << ", batch " << i);
    Batch batch;
    const auto first = source.lengths.begin() + static_cast<std::ptrdiff_t>(i * count);
    batch.lengths.assign(first, first + static_cast<std::ptrdiff_t>(count));
    const auto best =
        oracle::best_step_time(batch, topology, cost_7b_h100(), resolved(options, topology));
    const StepPlan plan = plan_step(batch, topology, cost_7b_h100(), options);
    EXPECT_LE(plan.lower_bound_ns, *best);
    EXPECT_GE(plan.predicted_step_ns, *best);
    const double ratio = static_cast<double>(plan.predicted_step_ns) / static_cast<double>(*best);
    ratios.mean += ratio / static_cast<double>(num_batches);
    ratios.max = std::max(ratios.max, ratio);
  }
  std::printf("%-22s %-12s %-10s mean %.5f, max %.5f\n", source.name, options.context.c_str(),
              std::string(name_of(options.sync)).c_str(), ratios.mean, ratios.max);
  return ratios;
}

TEST(FewSequences, AStepOfAnySizeIsWithinAThousandthOfTheBest) {
  for (const RealLengths& source : real_lengths()) {
    const Ratios ratios = ratios_of(source, 20, {.context = "dynamic:any"});
    EXPECT_LE(ratios.mean, 1.001) << source.name;
    EXPECT_LE(ratios.max, 1.005) << source.name;
  }
}

TEST(FewSequences, EveryOtherPlanIsTheBest) {
  for (const RealLengths& source : real_lengths()) {
    for (const PlanOptions& options :
         {PlanOptions{.context = "dynamic"},
          PlanOptions{.context = "dynamic", .sync = Sync::microbatch},
          PlanOptions{.context = "dynamic:any", .sync = Sync::microbatch}}) {
      EXPECT_EQ(ratios_of(source, 12, options).max, 1) << source.name;
    }
  }
}

}  // namespace
}  // namespace isochron
