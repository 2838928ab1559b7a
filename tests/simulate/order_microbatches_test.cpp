#include "isochron/simulate/order_microbatches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "isochron/core/order.h"
#include "isochron/simulate/order_memory.h"
#include "isochron/simulate/order_search.h"
#include "isochron/simulate/pipeline_time.h"
#include "isochron/simulate/simulate.h"
#include "tests/simulate/best_order.h"
#include "tests/simulate/random_pipeline.h"

namespace isochron {
namespace {

std::vector<PipelineItem> items_of(const std::vector<PassCost>& costs) {
  std::vector<PipelineItem> items;
  for (const PassCost& cost : costs) {
    items.push_back({.cost = cost, .activation_bytes = static_cast<double>(cost.forward)});
  }
  return items;
}

Nanoseconds time_of(const std::vector<PassCost>& costs, const PipelineShape& shape, Pass pass,
                    const std::vector<std::int32_t>& order) {
  std::vector<PassCost> ordered;
  for (const std::int32_t i : order) ordered.push_back(costs[static_cast<std::size_t>(i)]);
  return PipelineTime(shape, static_cast<std::int32_t>(costs.size()), pass).makespan(ordered);
}

std::vector<std::int32_t> fixed_order(const std::vector<PassCost>& costs) {
  std::vector<Nanoseconds> sizes;
  for (const PassCost& cost : costs) sizes.push_back(cost.forward + cost.backward);
  const auto places = small_ends(sizes);
  return {places.begin(), places.end()};
}

std::vector<std::int32_t> input_order(std::size_t count) {
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(OrderMicrobatches, PutsTheSmallOnesAtTheEnds) {
  // Two stages, per stage (1, 2), (9, 18), (2, 4). Small first and last is 1 + 42 + 4 or 2 + 42 +
  // 2 with nothing else to wait for; the large slot first would wait for 9 at the start.
  const std::vector<PassCost> costs = {{18, 36}, {2, 4}, {4, 8}};
  const MicrobatchOrder result = order_microbatches(items_of(costs), {.stages = 2});
  EXPECT_EQ(result.status, Status::optimal);
  EXPECT_EQ(result.order[1], 0);
  EXPECT_EQ(result.time_ns, oracle::best_order_time(costs, {.stages = 2}, Pass::train));
}

TEST(OrderMicrobatches, HasAnAnswerForNothingAndForOne) {
  const MicrobatchOrder none = order_microbatches({}, {.stages = 3});
  EXPECT_EQ(none.status, Status::optimal);
  EXPECT_TRUE(none.order.empty());
  const MicrobatchOrder one = order_microbatches(items_of({{30, 60}}), {.stages = 3});
  EXPECT_EQ(one.status, Status::optimal);
  EXPECT_EQ(one.order, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(one.time_ns, 90);
}

TEST(OrderMicrobatches, FindsTheBestOrderOfUpToSix) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed, {.max_stages = 5, .max_slots = 6});
    const MicrobatchOrder result = order_microbatches(items_of(costs), shape, {.pass = pass});
    EXPECT_EQ(result.status, Status::optimal);
    EXPECT_EQ(result.time_ns, oracle::best_order_time(costs, shape, pass));
    EXPECT_EQ(result.lower_bound_ns, result.time_ns);
    EXPECT_EQ(result.time_ns, time_of(costs, shape, pass, result.order));
  }
}

TEST(OrderMicrobatches, ComesWithinHalfAPercentOfTheBestOrderOfSevenAndEight) {
  double sum = 0;
  const int num_instances = 300;
  for (std::uint64_t seed = 0; seed < num_instances; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const PipelineShape shape = {.stages = 2 + static_cast<std::int32_t>(seed % 3)};
    const auto costs = lognormal_costs(seed, seed % 5 == 0 ? 8 : 7, seed % 2 == 0 ? 0.5 : 1.0);
    const MicrobatchOrder result = order_microbatches(items_of(costs), shape);
    const Nanoseconds best = oracle::best_order_time(costs, shape, Pass::train);
    ASSERT_GE(result.time_ns, best);
    ASSERT_LE(result.lower_bound_ns, best);
    sum += static_cast<double>(result.time_ns) / static_cast<double>(best) - 1;
  }
  EXPECT_LT(sum / num_instances, 0.0005);
}

TEST(OrderMicrobatches, IsNeverSlowerThanTheFixedOrders) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed, {.max_stages = 9, .max_slots = 30});
    for (const std::int64_t max_work : {0, 10'000, 1'000'000}) {
      const MicrobatchOrder result = order_microbatches(
          items_of(costs), shape, {.pass = pass, .max_work = max_work, .bound_work = max_work});
      EXPECT_TRUE(std::is_permutation(result.order.begin(), result.order.end(),
                                      input_order(costs.size()).begin()));
      EXPECT_EQ(result.time_ns, time_of(costs, shape, pass, result.order));
      EXPECT_LE(result.time_ns, time_of(costs, shape, pass, fixed_order(costs)));
      EXPECT_LE(result.time_ns, time_of(costs, shape, pass, input_order(costs.size())));
      EXPECT_LE(result.lower_bound_ns, result.time_ns);
      EXPECT_EQ(result.status == Status::optimal, result.lower_bound_ns == result.time_ns);
    }
  }
}

TEST(OrderMicrobatches, ClosesHalfOfTheGapBetweenSmallEndsAndTheBound) {
  for (const double sigma : {0.5, 1.0}) {
    for (const std::int32_t num_slots : {16, 32, 64}) {
      for (const std::int32_t stages : {4, 8, 16}) {
        SCOPED_TRACE(testing::Message() << "sigma " << sigma << ", " << num_slots << " slots, "
                                        << stages << " stages");
        double fixed_gap = 0;
        double found_gap = 0;
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          const PipelineShape shape = {.stages = stages};
          const auto costs = lognormal_costs(seed, num_slots, sigma);
          const MicrobatchOrder result = order_microbatches(items_of(costs), shape);
          const auto over = [&](Nanoseconds time) {
            return static_cast<double>(time) / static_cast<double>(result.lower_bound_ns) - 1;
          };
          fixed_gap += over(time_of(costs, shape, Pass::train, fixed_order(costs)));
          found_gap += over(result.time_ns);
        }
        EXPECT_LT(found_gap, fixed_gap / 2);
      }
    }
  }
}

TEST(OrderMicrobatches, NeedsNoSearchWhereTheBoundIsMet) {
  // Forward only over equal stages: every order is the best, so the work budget does not matter.
  const auto costs = lognormal_costs(1, 40, 1);
  std::vector<PassCost> forwards;
  for (const PassCost& cost : costs) forwards.push_back({.forward = cost.forward});
  const MicrobatchOrder result =
      order_microbatches(items_of(forwards), {.stages = 8}, {.pass = Pass::forward, .max_work = 0});
  EXPECT_EQ(result.status, Status::optimal);
}

TEST(OrderMicrobatches, KeepsTheMemoryLimitWhereAnOrderDoes) {
  int num_feasible = 0;
  int num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed, {.max_stages = 4, .max_slots = 6});
    if (costs.empty()) continue;
    const std::vector<PipelineItem> items = items_of(costs);
    std::vector<double> bytes;
    for (const PipelineItem& item : items) bytes.push_back(item.activation_bytes);
    const PipelineMemory memory(shape, pass, bytes);
    const std::int64_t limit = std::max<std::int64_t>(1, memory.lower_bound());
    const auto best = oracle::best_order_time(
        costs, shape, pass, [&](const auto& order) { return memory.peak_bytes(order) <= limit; });
    const MicrobatchOrder result =
        order_microbatches(items, shape, {.pass = pass, .max_activation_bytes = limit});
    if (best) {
      EXPECT_EQ(result.status, Status::optimal);
      EXPECT_EQ(result.time_ns, *best);
      EXPECT_LE(memory.peak_bytes(result.order), limit);
      ++num_feasible;
    } else {
      EXPECT_EQ(result.status, Status::infeasible);
      EXPECT_TRUE(result.order.empty());
      ++num_infeasible;
    }
  }
  EXPECT_GT(num_feasible, 50);
  EXPECT_GT(num_infeasible, 10);
}

TEST(OrderMicrobatches, KeepsTheMemoryLimitOfManyMicrobatches) {
  // Four slots are in flight; a limit of 203 lets two of them be large, 100 per stage.
  std::vector<PipelineItem> items(8, {.cost = {100, 200}, .activation_bytes = 400});
  items.insert(items.end(), 24, {.cost = {10, 20}, .activation_bytes = 4});
  const PipelineShape shape = {.stages = 4};
  const MicrobatchOrder free = order_microbatches(items, shape);
  const MicrobatchOrder limited = order_microbatches(items, shape, {.max_activation_bytes = 203});
  ASSERT_EQ(limited.status, Status::feasible);
  EXPECT_LT(free.time_ns, limited.time_ns);
  std::vector<double> bytes;
  for (const PipelineItem& item : items) bytes.push_back(item.activation_bytes);
  const PipelineMemory memory(shape, Pass::train, bytes);
  EXPECT_LE(memory.peak_bytes(limited.order), 203);
  EXPECT_GT(memory.peak_bytes(free.order), 203);
}

TEST(OrderMicrobatches, SaysWhetherALimitIsOutOfReachOrWasNotReached) {
  std::vector<PipelineItem> items(9, {.cost = {100, 200}, .activation_bytes = 40});
  const PipelineShape shape = {.stages = 4};
  EXPECT_EQ(order_microbatches(items, shape, {.max_activation_bytes = 39}).status,
            Status::infeasible);  // four in flight hold 40
  EXPECT_EQ(order_microbatches(items, shape, {.max_activation_bytes = 40}).status, Status::optimal);
  // Three of 100 per stage must be apart by the four in flight: 100 + 3 * 10.
  items[3].activation_bytes = items[4].activation_bytes = items[5].activation_bytes = 400;
  EXPECT_EQ(order_microbatches(items, shape, {.max_activation_bytes = 130, .max_work = 0}).status,
            Status::unknown);
  EXPECT_EQ(order_microbatches(items, shape, {.max_activation_bytes = 130}).status,
            Status::optimal);
}

TEST(OrderMicrobatches, GivesTheSameOrderAgain) {
  const auto costs = lognormal_costs(3, 24, 1);
  const auto run = [&] { return order_microbatches(items_of(costs), {.stages = 4}).order; };
  EXPECT_EQ(run(), run());
}

TEST(OrderMicrobatches, TakesCostsNearTheLargest) {
  const std::vector<PassCost> costs(9, {max_total_cost / 2, max_total_cost / 2});
  const MicrobatchOrder result =
      order_microbatches(items_of(costs), {.stages = 4, .transfer_ns = max_total_cost});
  EXPECT_EQ(result.time_ns, max_total_cost + 1);
}

TEST(SpreadOrder, GivesAllWindowsAboutTheSameSum) {
  const std::vector<double> sizes = {9, 8, 7, 1, 2, 3, 4, 5, 6};
  // Every third place, in turn from the left and from the right: 9 8 7, 6 5 4, 3 2 1.
  EXPECT_EQ(spread_order(sizes, 3), (std::vector<std::int32_t>{0, 6, 5, 1, 7, 4, 2, 8, 3}));
  EXPECT_EQ(spread_order(sizes, 20), (std::vector<std::int32_t>{0, 1, 2, 8, 7, 6, 5, 4, 3}));
  EXPECT_TRUE(spread_order({}, 3).empty());
}

// Ranks with pipelines of their own, or pairs in some slots.
StepPlan random_plan(std::uint64_t seed, std::int32_t num_slots) {
  Random random(seed);
  StepPlan plan;
  plan.topology = {.ranks = 4, .capacity = 1'000'000, .pipeline = {.stages = 3}};
  plan.options.context = "dynamic";
  plan.cost.linear_ns = 1;
  plan.cost.activation_bytes_per_token = 1;
  for (std::int32_t i = 0; i < num_slots; ++i) {
    Slot& slot = plan.microbatches.emplace_back();
    for (std::int64_t first = 0; first < 4;) {
      const std::int64_t size = first % 2 == 0 && random.below(2) == 0 ? 2 : 1;
      const SequenceId id(static_cast<std::int32_t>(plan.batch.lengths.size()));
      slot.push_back({.ranks = {.first = first, .size = size}, .sequences = {id}});
      plan.batch.lengths.push_back(random.between(1, random.below(4) == 0 ? 9000 : 900));
      first += size;
    }
  }
  return plan;
}

StepPlan reordered(const StepPlan& plan, const std::vector<std::int32_t>& order) {
  StepPlan result = plan;
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.microbatches[i] = plan.microbatches[static_cast<std::size_t>(order[i])];
  }
  return result;
}

TEST(OrderSlots, FindsTheBestOrderOfAFewSlots) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StepPlan plan = random_plan(seed, 1 + static_cast<std::int32_t>(seed % 5));
    if (seed % 3 == 0) plan.options.sync = Sync::microbatch;
    if (seed % 2 == 0) plan.microbatches.back().pop_back();  // ranks that do not wait
    std::vector<std::int32_t> order = input_order(plan.microbatches.size());
    Nanoseconds best = max_total_cost;
    do {
      best = std::min(best, simulate(reordered(plan, order)).step_ns);
    } while (std::next_permutation(order.begin(), order.end()));
    const MicrobatchOrder result = order_slots(plan, 1'000'000);
    EXPECT_EQ(result.status, Status::optimal);
    EXPECT_EQ(result.time_ns, best);
    EXPECT_EQ(simulate(reordered(plan, result.order)).step_ns, best);
  }
}

TEST(OrderSlots, ImprovesManySlotsAndBoundsThem) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StepPlan plan = random_plan(seed, 20);
    if (seed % 3 == 0) plan.options.sync = Sync::microbatch;
    const MicrobatchOrder result = order_slots(plan, 2'000'000);
    EXPECT_EQ(simulate(reordered(plan, result.order)).step_ns, result.time_ns);
    EXPECT_LT(result.time_ns, simulate(plan).step_ns);
    EXPECT_LE(result.lower_bound_ns, result.time_ns);
  }
}

TEST(OrderSlots, KeepsTheMemoryLimitOfThePlanOnEveryRank) {
  int num_limited = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StepPlan plan = random_plan(seed, 12);
    const auto peak_of = [&](const std::vector<std::int32_t>& order) {
      const auto peaks = simulate(reordered(plan, order)).peak_activation_bytes;
      return *std::max_element(peaks.begin(), peaks.end());
    };
    const MicrobatchOrder free = order_slots(plan, 1'000'000);
    plan.options.max_activation_bytes = peak_of(free.order) * 9 / 10;
    const MicrobatchOrder limited = order_slots(plan, 1'000'000);
    if (limited.order.empty()) continue;
    EXPECT_LE(peak_of(limited.order), plan.options.max_activation_bytes);
    ++num_limited;
  }
  EXPECT_GT(num_limited, 5);
}

TEST(OrderSlots, KnowsThatASlotTooLargeFitsNowhere) {
  StepPlan plan = random_plan(1, 9);
  plan.options.max_activation_bytes = 1;
  EXPECT_EQ(order_slots(plan, 1'000'000).status, Status::infeasible);
}

TEST(OrderSlots, SeesThatWithoutStagesAndGroupsEveryOrderIsTheBest) {
  StepPlan plan = random_plan(1, 9);
  plan.topology.pipeline = {};
  for (Slot& slot : plan.microbatches) {
    slot = {{.ranks = {.first = 0, .size = 4}, .sequences = slot.front().sequences}};
  }
  EXPECT_EQ(order_slots(plan, 0).status, Status::optimal);
}

}  // namespace
}  // namespace isochron
