#include "isochron/simulate/place_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "isochron/simulate/order_bound.h"
#include "isochron/simulate/order_microbatches.h"
#include "tests/simulate/best_order.h"
#include "tests/simulate/random_pipeline.h"

namespace isochron {
namespace {

Nanoseconds bound_of(const std::vector<PassCost>& costs, const PipelineShape& shape,
                     std::int64_t max_work) {
  ChunkCosts rows(shape);
  for (const PassCost& cost : costs) rows.add(cost);
  return place_bound(rows, shape, max_work);
}

TEST(PlaceBound, NeverExceedsTheBestOrder) {
  // With one ratio or several, with ties, zeros, slots that stand out and transfers.
  int num_tight = 0;
  constexpr std::uint64_t num_seeds = 20'000;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto draw = [&](std::int64_t least, std::int64_t most) {
      return static_cast<std::int32_t>(random.between(least, most));
    };
    const PipelineShape shape = {.stages = draw(2, 6),
                                 .transfer_ns = seed % 3 == 0 ? draw(0, 50) : 0};
    std::vector<PassCost> costs(static_cast<std::size_t>(draw(1, 5)));
    const std::int64_t longest = draw(0, 1) == 1 ? 4 : 1000;
    const std::int64_t ratio = draw(0, 3);
    for (PassCost& cost : costs) {
      const std::int64_t part = draw(0, 5) == 0 ? 4 * longest : draw(0, longest);
      cost = {.forward = part * shape.stages,
              .backward = (ratio == 0 ? draw(0, 2 * longest) : part * ratio) * shape.stages};
    }
    const Nanoseconds best = oracle::best_order_time(costs, shape, Pass::train);
    const Nanoseconds bound = bound_of(costs, shape, 100'000);
    EXPECT_LE(bound, best);
    num_tight += static_cast<double>(bound) >= 0.99 * static_cast<double>(best) ? 1 : 0;
  }
  EXPECT_GT(num_tight, num_seeds / 2);
}

TEST(PlaceBound, NeverExceedsTheBestOrderOfMoreSlotsThanStages) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const PipelineShape shape = {.stages = 2 + static_cast<std::int32_t>(seed % 3)};
    const auto costs = lognormal_costs(seed, 8, 0.7);
    const Nanoseconds best = oracle::best_order_time(costs, shape, Pass::train);
    for (const std::int64_t work : {100'000, 1'000'000, 10'000'000}) {
      EXPECT_LE(bound_of(costs, shape, work), best);
    }
  }
}

TEST(PlaceBound, NeverExceedsWhatASearchFinds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const PipelineShape shape = {.stages = static_cast<std::int32_t>(random.between(2, 12)),
                                 .transfer_ns = seed % 4 == 0 ? random.between(0, 100'000) : 0};
    const auto costs =
        lognormal_costs(seed, static_cast<std::int32_t>(random.between(2, 24)), random.unit());
    std::vector<PipelineItem> items;
    for (const PassCost& cost : costs) items.push_back({.cost = cost});
    const MicrobatchOrder found =
        order_microbatches(items, shape, {.max_work = 2'000'000, .bound_work = 0});
    EXPECT_LE(bound_of(costs, shape, 2'000'000), found.time_ns);
  }
}

TEST(PlaceBound, IsTheBestOrderOfTwoSlots) {
  // Two stages, per stage (1, 2) and (3, 6): work of 12. With the small one first a path goes down
  // with it and up with the large one: 1 + 6 more. With the large one first a path goes down and up
  // with it, and misses the other forward: 3 + 6 - 1 more.
  EXPECT_EQ(bound_of({{2, 4}, {6, 12}}, {.stages = 2}, 1'000'000), 12 + 7);
}

TEST(PlaceBound, IsExactForEqualSlots) {
  for (const std::int32_t stages : {2, 5, 16}) {
    for (const std::size_t num_slots : {1, 4, 20}) {
      const std::vector<PassCost> costs(num_slots, {stages * 100'000, stages * 200'000});
      const auto slots = static_cast<std::int64_t>(num_slots);
      const Nanoseconds time = 300'000 * (slots + stages - 1);
      EXPECT_EQ(bound_of(costs, {.stages = stages}, 10'000'000), time);
    }
  }
}

TEST(PlaceBound, GetsBetterWithWork) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto costs = lognormal_costs(seed, 16, 0.5);
    Nanoseconds least = 0;
    for (const std::int64_t work : {0, 500'000, 2'000'000, 8'000'000}) {
      const Nanoseconds bound = bound_of(costs, {.stages = 4}, work);
      EXPECT_GE(bound, least);
      least = bound;
    }
    EXPECT_GT(least, order_bound(costs, {.stages = 4}, Pass::train));
  }
}

TEST(PlaceBound, IsNothingWithoutForwardsOrBackwards) {
  EXPECT_EQ(bound_of({}, {.stages = 4}, 1'000'000), 0);
  EXPECT_EQ(bound_of({{0, 5}, {0, 7}}, {.stages = 4}, 1'000'000), 0);
  EXPECT_EQ(bound_of({{5, 0}, {7, 0}}, {.stages = 4}, 1'000'000), 0);
}

}  // namespace
}  // namespace isochron
