#include "isochron/simulate/pipeline_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/schedule/pipeline_schedule.h"
#include "tests/simulate/random_pipeline.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

Nanoseconds makespan(const PipelineShape& shape, const std::vector<PassCost>& costs,
                     Pass pass = Pass::train) {
  return PipelineTime(shape, static_cast<std::int32_t>(costs.size()), pass).makespan(costs);
}

// The same by the definition alone: begin times are raised until every operation begins after what
// it waits for. Shares nothing with PipelineTime but the schedule and the rounding of costs.
Nanoseconds relaxed_makespan(const PipelineShape& shape, const std::vector<PassCost>& costs,
                             Pass pass) {
  const auto num_slots = static_cast<std::int32_t>(costs.size());
  const PipelineSchedule schedule = pipeline_schedule(shape, num_slots, pass);
  const std::int32_t num_chunks = shape.num_chunks();
  // By direction, slot and chunk.
  const auto index = [&](Direction direction, std::int32_t slot, std::int32_t chunk) {
    return static_cast<std::size_t>(
        ((direction == Direction::forward ? 0 : num_slots) + slot) * num_chunks + chunk);
  };
  std::vector<Nanoseconds> end(static_cast<std::size_t>(2 * num_slots * num_chunks), 0);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const auto& operations : schedule) {
      Nanoseconds before = 0;
      for (const auto& [slot, chunk, direction] : operations) {
        Nanoseconds begin = before;
        const bool is_forward = direction == Direction::forward;
        if (is_forward && chunk > 0) {
          begin = std::max(begin, end[index(direction, slot, chunk - 1)] + shape.transfer_ns);
        } else if (!is_forward && chunk + 1 < num_chunks) {
          begin = std::max(begin, end[index(direction, slot, chunk + 1)] + shape.transfer_ns);
        } else if (!is_forward) {
          begin = std::max(begin, end[index(Direction::forward, slot, chunk)]);
        }
        const PassCost& cost = costs[static_cast<std::size_t>(slot)];
        before = begin + chunk_cost(shape, is_forward ? cost.forward : cost.backward, chunk);
        Nanoseconds& known = end[index(direction, slot, chunk)];
        has_changed = has_changed || before != known;
        known = before;
      }
    }
  }
  return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
}

TEST(PipelineTime, FollowsATableWorkedOutByHand) {
  // Two stages, costs per stage f, b = (1, 2), (3, 4), (2, 1):
  //   stage 0   F0 0-1   F1 1-4   B0 4-6   F2 6-8   B1 11-15  B2 15-16
  //   stage 1   F0 1-2   B0 2-4   F1 4-7   B1 7-11  F2 11-13  B2 13-14
  EXPECT_EQ(makespan({.stages = 2}, {{2, 4}, {6, 8}, {4, 2}}), 16);
  // With a transfer of 10:
  //   stage 0   F0 0-1    F1 1-4    B0 24-26  F2 26-28  B1 36-40  B2 51-52
  //   stage 1   F0 11-12  B0 12-14  F1 14-17  B1 17-21  F2 38-40  B2 40-41
  EXPECT_EQ(makespan({.stages = 2, .transfer_ns = 10}, {{2, 4}, {6, 8}, {4, 2}}), 52);
}

TEST(PipelineTime, CutsCostsByShares) {
  // Chunks take 1/4 and 3/4, rounded up: f = 1, 3 and b = 2, 6 of (4, 8); 1, 2 and 1, 1 of (2, 1).
  //   stage 0   F0 0-1   F1 1-2   B0 10-12  B1 13-14
  //   stage 1   F0 1-4   B0 4-10  F1 10-12  B1 12-13
  EXPECT_EQ(makespan({.stages = 2, .shares = {0.25, 0.75}}, {{4, 8}, {2, 1}}), 14);
}

TEST(PipelineTime, TakesOneStageSlotBySlot) {
  EXPECT_EQ(makespan({}, {{5, 7}, {1, 1}, {0, 3}}), 17);
  EXPECT_EQ(makespan({.transfer_ns = 100, .shares = {1.0}}, {{5, 7}}), 12);
  EXPECT_EQ(makespan({}, {}), 0);
  EXPECT_EQ(makespan({.stages = 5}, {}), 0);
}

TEST(PipelineTime, TakesUniformSlotsAsTheFormulaSays) {
  for (const std::int32_t stages : {1, 2, 3, 4, 7, 8, 16}) {
    for (const std::int32_t num_slots : {1, 2, 3, 5, 16, 33}) {
      const std::vector<PassCost> costs(static_cast<std::size_t>(num_slots),
                                        {3 * stages, 5 * stages});
      EXPECT_EQ(makespan({.stages = stages}, costs), (num_slots + stages - 1) * (3 + 5));
    }
  }
}

TEST(PipelineTime, DividesTheBubbleOfUniformSlotsByTheVirtualStages) {
  for (const std::int32_t stages : {2, 3, 4, 7, 8}) {
    for (const std::int32_t num_virtual : {2, 3, 4}) {
      for (const std::int32_t rounds : {1, 2, 5}) {
        const PipelineShape shape = {.stages = stages, .virtual_ = num_virtual, .group = stages};
        const std::vector<PassCost> costs(static_cast<std::size_t>(rounds * stages),
                                          {3 * shape.num_chunks(), 3 * shape.num_chunks()});
        EXPECT_EQ(makespan(shape, costs), (rounds * stages * num_virtual + stages - 1) * (3 + 3));
      }
    }
  }
}

TEST(PipelineTime, OfForwardsAloneIsTheFormulaOfTheFlowShop) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto stages = static_cast<std::int32_t>(random.between(1, 8));
    std::vector<PassCost> costs(static_cast<std::size_t>(random.between(1, 20)));
    Nanoseconds sum = 0;
    Nanoseconds largest = 0;
    for (PassCost& cost : costs) {
      const Nanoseconds part = random.between(0, 1000);
      cost.forward = part * stages;
      sum += part;
      largest = std::max(largest, part);
    }
    EXPECT_EQ(makespan({.stages = stages}, costs, Pass::forward), sum + (stages - 1) * largest);
  }
}

TEST(PipelineTime, IsWhatTheDefinitionGives) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed);
    EXPECT_EQ(makespan(shape, costs, pass), relaxed_makespan(shape, costs, pass));
  }
}

TEST(PipelineTime, NeverFallsWhenTransfersTakeLonger) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto [shape, costs, pass] = random_pipeline(seed);
    PipelineShape slower = shape;
    slower.transfer_ns += 7;
    EXPECT_LE(makespan(shape, costs, pass), makespan(slower, costs, pass));
  }
}

TEST(PipelineTime, GivesTheSameAnswerAgain) {
  const auto [shape, costs, pass] = random_pipeline(5);
  PipelineTime time(shape, static_cast<std::int32_t>(costs.size()), pass);
  const Nanoseconds first = time.makespan(costs);
  (void)time.makespan(std::vector<PassCost>(costs.size(), {7, 7}));
  EXPECT_EQ(time.makespan(costs), first);
}

TEST(PipelineTime, RunsRowsInTheOrderGiven) {
  const PipelineShape shape = {.stages = 2};
  const std::vector<PassCost> costs = {{4, 2}, {2, 4}, {6, 8}};
  ChunkCosts rows(shape);
  for (const PassCost& cost : costs) rows.add(cost);
  PipelineTime time(shape, 3, Pass::train);
  const std::vector<std::int32_t> order = {1, 2, 0};
  EXPECT_EQ(time.makespan(rows, order), 16);  // the first table above
}

TEST(PipelineTime, StopsAboveTheLargestTotal) {
  const Nanoseconds half = max_total_cost / 2;
  EXPECT_EQ(makespan({}, {{half, half}}), max_total_cost);
  EXPECT_EQ(makespan({}, {{half, half}, {1, 0}}), max_total_cost + 1);
  EXPECT_EQ(makespan({}, std::vector<PassCost>(50, {half, half})), max_total_cost + 1);
  EXPECT_EQ(makespan({.stages = 4, .transfer_ns = max_total_cost},
                     std::vector<PassCost>(9, {half, half})),
            max_total_cost + 1);
  // A whole cost of 2^62 on two stages: each half twice, one after the other.
  EXPECT_EQ(makespan({.stages = 2}, {{half, half}}), max_total_cost);
}

// What the search of grids rests on: through equal stages all wait for the longest slot.
TEST(PipelineTime, AForwardPassTakesAsLongInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const PipelineShape shape{.stages = static_cast<std::int32_t>(random.between(1, 6)),
                              .transfer_ns = random.between(0, 50)};
    std::vector<PassCost> costs(random.below(12) + 1);
    for (PassCost& cost : costs) cost.forward = random.between(0, 1000);
    const Nanoseconds time = makespan(shape, costs, Pass::forward);
    for (int i = 0; i < 10; ++i) {
      std::swap(costs[random.below(costs.size())], costs[random.below(costs.size())]);
      ASSERT_EQ(makespan(shape, costs, Pass::forward), time) << "seed " << seed;
    }
  }
}

TEST(PipelineTime, RejectsWhatTheScheduleRejects) {
  EXPECT_EQ(message_of([] { PipelineTime({.stages = 2}, -1, Pass::train); }),
            "[schedule] num_slots is -1, must be at least 0");
}

TEST(SplitCost, RoundsTheForwardPartAndKeepsTheSum) {
  EXPECT_EQ(split_cost(10, 1.0 / 3), (PassCost{3, 7}));
  EXPECT_EQ(split_cost(11, 0.5), (PassCost{6, 5}));
  EXPECT_EQ(split_cost(0, 0.5), (PassCost{0, 0}));
  EXPECT_EQ(split_cost(max_total_cost, 0.25),
            (PassCost{max_total_cost / 4, max_total_cost / 4 * 3}));
}

TEST(ChunkCost, RoundsUp) {
  EXPECT_EQ(chunk_cost({.stages = 4}, 9, 0), 3);
  EXPECT_EQ(chunk_cost({.stages = 4}, 8, 3), 2);
  EXPECT_EQ(chunk_cost({.stages = 4}, 0, 0), 0);
  EXPECT_EQ(chunk_cost({.stages = 2, .shares = {0.25, 0.75}}, 10, 0), 3);
  EXPECT_EQ(chunk_cost({.stages = 2, .shares = {0.25, 0.75}}, 10, 1), 8);
  EXPECT_EQ(chunk_cost({}, max_total_cost - 1, 0), max_total_cost - 1);
  EXPECT_EQ(chunk_cost({.shares = {1.0}}, max_total_cost - 1, 0), max_total_cost - 1);
}

}  // namespace
}  // namespace isochron
