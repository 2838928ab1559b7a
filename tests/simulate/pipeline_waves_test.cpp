#include "isochron/simulate/pipeline_waves.h"

#include <gtest/gtest.h>

#include <numeric>

#include "isochron/simulate/pipeline_time.h"
#include "tests/simulate/random_pipeline.h"

namespace isochron {
namespace {

TEST(PipelineWaves, TimesEveryOrderLikeThePipeline) {
  int num_timed = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed, {.max_stages = 9, .max_slots = 20});
    ChunkCosts rows(shape);
    for (const PassCost& cost : costs) rows.add(cost);
    if (!PipelineWaves::can_time(rows, shape, pass)) continue;
    ++num_timed;
    PipelineTime time(shape, static_cast<std::int32_t>(costs.size()), pass);
    PipelineWaves waves(rows, shape);
    std::vector<std::int32_t> order(costs.size());
    std::iota(order.begin(), order.end(), 0);
    Random random(seed);
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(waves.makespan(order), time.makespan(rows, order));
      if (order.size() < 2) break;
      // Now and then back to the order before, as a search does.
      const std::size_t a = random.below(order.size());
      const std::size_t b = random.below(order.size());
      std::swap(order[a], order[b]);
      if (random.below(2) == 0) continue;
      ASSERT_EQ(waves.makespan(order), time.makespan(rows, order));
      std::swap(order[a], order[b]);
    }
  }
  EXPECT_GT(num_timed, 300);
}

TEST(PipelineWaves, SimulatesNoMoreThanWhatDiffers) {
  const PipelineShape shape = {.stages = 4};
  ChunkCosts rows(shape);
  for (const PassCost& cost : lognormal_costs(1, 32, 1)) rows.add(cost);
  PipelineWaves waves(rows, shape);
  std::vector<std::int32_t> order(32);
  std::iota(order.begin(), order.end(), 0);
  (void)waves.makespan(order);
  const std::int64_t whole = waves.num_operations();
  EXPECT_EQ(whole, 2 * 32 * 4);
  (void)waves.makespan(order);
  EXPECT_EQ(waves.num_operations(), whole);
  std::swap(order[30], order[31]);
  (void)waves.makespan(order);
  EXPECT_LE(waves.num_operations() - whole, 2 * (2 + 3) * 4);
}

TEST(PipelineWaves, LeavesWhatItCannotTime) {
  ChunkCosts rows({.stages = 2});
  rows.add({.forward = max_total_cost / 2, .backward = max_total_cost / 2});
  EXPECT_TRUE(PipelineWaves::can_time(rows, {.stages = 2}, Pass::train));
  EXPECT_FALSE(PipelineWaves::can_time(rows, {.stages = 2}, Pass::forward));
  EXPECT_FALSE(PipelineWaves::can_time(rows, {.stages = 2, .transfer_ns = 1}, Pass::train));
  EXPECT_FALSE(
      PipelineWaves::can_time(rows, {.stages = 2, .virtual_ = 2, .group = 2}, Pass::train));
}

}  // namespace
}  // namespace isochron
