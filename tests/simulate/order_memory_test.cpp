#include "isochron/simulate/order_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "isochron/core/units.h"
#include "tests/simulate/random_pipeline.h"

namespace isochron {
namespace {

TEST(PipelineMemory, HoldsAWindowOfConsecutiveSlots) {
  // Three stages hold three slots at stage 0, a third of each.
  const std::vector<double> bytes = {30, 60, 90, 120, 3};
  const PipelineMemory memory({.stages = 3}, Pass::train, bytes);
  EXPECT_EQ(memory.peak_bytes(std::vector<std::int32_t>{0, 1, 2, 3, 4}), 20 + 30 + 40);
  EXPECT_EQ(memory.peak_bytes(std::vector<std::int32_t>{2, 0, 4, 3, 1}), 1 + 40 + 20);
  // The largest with the two smallest, 40 + 1 + 10; one window of the three smallest is less.
  EXPECT_EQ(memory.lower_bound(), 51);
}

TEST(PipelineMemory, BoundsTheMeanOfTheWindows) {
  const std::vector<double> bytes(7, 30);  // two windows of three slots
  EXPECT_EQ(PipelineMemory({.stages = 3}, Pass::train, bytes).lower_bound(), 30);
  const std::vector<double> uneven = {2, 20, 20, 20};  // 31 / 2, the largest 10 + 1
  EXPECT_EQ(PipelineMemory({.stages = 2}, Pass::train, uneven).lower_bound(), 16);
}

TEST(PipelineMemory, HoldsOneSlotAtATimeIfForwardOnly) {
  const std::vector<double> bytes = {30, 60, 90};
  const PipelineMemory memory({.stages = 3}, Pass::forward, bytes);
  EXPECT_EQ(memory.peak_bytes(std::vector<std::int32_t>{0, 1, 2}), 30);
  EXPECT_EQ(memory.lower_bound(), 30);
}

TEST(PipelineMemory, HoldsVisitsOfVirtualStages) {
  // Two stages of two chunks, groups of two: 2 * 1 + 1 * 2 + 1 visits in flight on stage 0 (SPEC
  // K.3: 2 slots x (1 + 1/4) of two chunks each).
  const std::vector<double> bytes(8, 40);
  const PipelineMemory memory({.stages = 2, .virtual_ = 2, .group = 2}, Pass::train, bytes);
  EXPECT_EQ(memory.peak_bytes(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}), 5 * 10);
}

TEST(PipelineMemory, BoundsEveryOrder) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed, {.max_stages = 4, .max_slots = 6});
    std::vector<double> bytes;
    for (const PassCost& cost : costs) bytes.push_back(static_cast<double>(cost.forward));
    const PipelineMemory memory(shape, pass, bytes);
    std::vector<std::int32_t> order(costs.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      ASSERT_LE(memory.lower_bound(), memory.peak_bytes(order));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(PipelineMemory, StopsAboveTheLargestTotal) {
  const std::vector<double> bytes(9, 0x1p64);
  const PipelineMemory memory({.stages = 3}, Pass::train, bytes);
  EXPECT_EQ(memory.peak_bytes(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}),
            max_total_cost + 1);
  EXPECT_EQ(memory.lower_bound(), max_total_cost + 1);
}

}  // namespace
}  // namespace isochron
