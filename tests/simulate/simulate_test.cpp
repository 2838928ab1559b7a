#include "isochron/simulate/simulate.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/simulate/pipeline_time.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

std::vector<SequenceId> ids(const std::vector<std::int32_t>& numbers) {
  std::vector<SequenceId> result;
  for (const std::int32_t number : numbers) result.emplace_back(number);
  return result;
}

ContextGroup group(std::int64_t first, std::int64_t size,
                   const std::vector<std::int32_t>& numbers) {
  return {.ranks = {.first = first, .size = size}, .sequences = ids(numbers)};
}

// A token costs a nanosecond, a third of it forward, and nothing is moved.
StepPlan plan_of(std::int32_t ranks, const std::vector<Tokens>& lengths,
                 const std::vector<Slot>& slots) {
  StepPlan plan;
  plan.topology = {.ranks = ranks, .capacity = 1'000'000};
  plan.options.context = "dynamic:any";
  plan.cost.linear_ns = 1;
  plan.batch.lengths = lengths;
  plan.microbatches = slots;
  return plan;
}

TEST(Simulate, HasNoTimeForNothing) {
  const Timeline timeline = simulate(plan_of(2, {}, {}));
  EXPECT_EQ(timeline.step_ns, 0);
  EXPECT_TRUE(timeline.spans.empty());
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{0, 0}));
  EXPECT_EQ(timeline.peak_activation_bytes, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(timeline.bubble(0), 0);
}

TEST(Simulate, SplitsASlotIntoForwardAndBackward) {
  const Timeline timeline =
      simulate(plan_of(1, {30, 10}, {{group(0, 1, {0})}, {group(0, 1, {1})}}));
  const std::vector<TimelineSpan> expected = {
      {0, 0, {0, 0, Direction::forward}, 0, 0, 10},
      {0, 0, {0, 0, Direction::backward}, 0, 10, 30},
      {0, 0, {1, 0, Direction::forward}, 0, 30, 33},
      {0, 0, {1, 0, Direction::backward}, 0, 33, 40},
  };
  EXPECT_EQ(timeline.spans, expected);
  EXPECT_EQ(timeline.step_ns, 40);
}

TEST(Simulate, AGroupStartsWhenItsLastMemberIsFree) {
  // Rank 0 is free at 30, rank 1 at 60; then both take 30 / 2, and rank 2 is alone all the time.
  const Timeline timeline = simulate(
      plan_of(3, {30, 60, 30, 45},
              {{group(0, 1, {0}), group(1, 1, {1})}, {group(0, 2, {2}), group(2, 1, {3})}}));
  EXPECT_EQ(timeline.step_ns, 75);
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{45, 75, 45}));
  ASSERT_EQ(timeline.spans.size(), 10u);
  EXPECT_EQ(timeline.spans[2], (TimelineSpan{0, 0, {1, 0, Direction::forward}, 0, 60, 65}));
  EXPECT_EQ(timeline.spans[8], (TimelineSpan{2, 0, {1, 0, Direction::forward}, 1, 0, 15}));
  EXPECT_DOUBLE_EQ(timeline.bubble(0), 0.4);
  EXPECT_DOUBLE_EQ(timeline.bubble(1), 0);
}

TEST(Simulate, AllRanksMeetAfterEverySlotOfSyncMicrobatch) {
  StepPlan plan =
      plan_of(2, {30, 60, 50, 20},
              {{group(0, 1, {0}), group(1, 1, {1})}, {group(0, 1, {2}), group(1, 1, {3})}});
  EXPECT_EQ(simulate(plan).step_ns, 80);
  plan.options.sync = Sync::microbatch;
  const Timeline timeline = simulate(plan);
  EXPECT_EQ(timeline.step_ns, 60 + 50);
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{80, 80}));
  EXPECT_EQ(timeline.spans[2], (TimelineSpan{0, 0, {1, 0, Direction::forward}, 0, 60, 77}));
}

TEST(Simulate, EverySlotOfAPipelineTakesItsSlowestGroupUnderSyncMicrobatch) {
  // Per stage (5, 10), (10, 20) in slot 0 and (10, 20), (5, 10) in slot 1; all wait for (10, 20).
  StepPlan plan =
      plan_of(2, {30, 60, 60, 30},
              {{group(0, 1, {0}), group(1, 1, {1})}, {group(0, 1, {2}), group(1, 1, {3})}});
  plan.topology.pipeline = {.stages = 2};
  plan.options.sync = Sync::microbatch;
  const Timeline timeline = simulate(plan);
  EXPECT_EQ(timeline.step_ns, (2 + 2 - 1) * (10 + 20));
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{45, 45, 45, 45}));
}

TEST(Simulate, PlaysAPipelineAsTheTableSays) {
  // f, b = (2, 4), (4, 8), (1, 2) on each of two stages. F1 reaches stage 1 at 6, which is busy
  // with B0 until 8.
  StepPlan plan =
      plan_of(1, {12, 24, 6}, {{group(0, 1, {0})}, {group(0, 1, {1})}, {group(0, 1, {2})}});
  plan.topology.pipeline = {.stages = 2};
  const Timeline timeline = simulate(plan);
  const auto forward = Direction::forward;
  const auto backward = Direction::backward;
  const std::vector<TimelineSpan> expected = {
      {0, 0, {0, 0, forward}, 0, 0, 2},    {0, 0, {1, 0, forward}, 0, 2, 6},
      {0, 0, {0, 0, backward}, 0, 8, 12},  {0, 0, {2, 0, forward}, 0, 12, 13},
      {0, 0, {1, 0, backward}, 0, 20, 28}, {0, 0, {2, 0, backward}, 0, 28, 30},
      {0, 1, {0, 1, forward}, 0, 2, 4},    {0, 1, {0, 1, backward}, 0, 4, 8},
      {0, 1, {1, 1, forward}, 0, 8, 12},   {0, 1, {1, 1, backward}, 0, 12, 20},
      {0, 1, {2, 1, forward}, 0, 20, 21},  {0, 1, {2, 1, backward}, 0, 21, 23},
  };
  EXPECT_EQ(timeline.spans, expected);
  EXPECT_EQ(timeline.step_ns, 30);
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{21, 21}));
}

TEST(Simulate, HoldsActivationsFromForwardToBackward) {
  // Two slots in flight on stage 0, one on stage 1; half of the layers each; 10 bytes a token.
  StepPlan plan =
      plan_of(1, {12, 24, 6}, {{group(0, 1, {0})}, {group(0, 1, {1})}, {group(0, 1, {2})}});
  plan.cost.activation_bytes_per_token = 10;
  plan.topology.pipeline = {.stages = 2};
  EXPECT_EQ(simulate(plan).peak_activation_bytes, (std::vector<std::int64_t>{(12 + 24) * 5}));
  plan.topology.pipeline.shares = {0.1, 0.9};  // stage 0: 36 tokens, stage 1: 24
  EXPECT_EQ(simulate(plan).peak_activation_bytes, (std::vector<std::int64_t>{24 * 9}));
  plan.topology.pipeline = {};
  EXPECT_EQ(simulate(plan).peak_activation_bytes, (std::vector<std::int64_t>{24 * 10}));
}

TEST(Simulate, HoldsActivationsOfForwardsAloneForTheOperationOnly) {
  StepPlan plan =
      plan_of(1, {12, 24, 6}, {{group(0, 1, {0})}, {group(0, 1, {1})}, {group(0, 1, {2})}});
  plan.cost.activation_bytes_per_token = 10;
  plan.topology.pipeline = {.stages = 2};
  plan.options.pass = Pass::forward;
  EXPECT_EQ(simulate(plan).peak_activation_bytes, (std::vector<std::int64_t>{24 * 5}));
}

TEST(Simulate, CountsThePaddedTokensOfAGroupOnEachMember) {
  // 13 and 3 tokens on two ranks with tensor parallel 2: padded to 16 and 8, 12 on each rank.
  StepPlan plan = plan_of(3, {13, 3, 5}, {{group(0, 2, {0, 1}), group(2, 1, {2})}});
  plan.options.tensor_parallel = 2;
  plan.cost.activation_bytes_per_token = 1;
  EXPECT_EQ(simulate(plan).peak_activation_bytes, (std::vector<std::int64_t>{12, 12, 6}));
}

TEST(Simulate, PlaceholdersCostTheFixedPartAndHoldNothing) {
  StepPlan plan = plan_of(2, {30}, {{group(0, 1, {0}), group(1, 1, {})}});
  plan.cost.microbatch_ns = 9;
  plan.cost.activation_bytes_per_token = 1;
  const Timeline timeline = simulate(plan);
  EXPECT_EQ(timeline.busy_ns, (std::vector<Nanoseconds>{39, 9}));
  EXPECT_EQ(timeline.peak_activation_bytes, (std::vector<std::int64_t>{30, 0}));
}

TEST(Simulate, RunsForwardsAlone) {
  StepPlan plan = plan_of(1, {30, 10}, {{group(0, 1, {0})}, {group(0, 1, {1})}});
  plan.options.pass = Pass::forward;
  const Timeline timeline = simulate(plan);
  EXPECT_EQ(timeline.step_ns, 10 + 3);
  EXPECT_EQ(timeline.spans.size(), 2u);
}

TEST(Simulate, CouplesTheRanksOfAGroupAtEveryStage) {
  // Per stage: slot 0 is (2, 4) on rank 0 and (4, 8) on rank 1, slot 1 is (3, 6) on both together.
  //   rank 0    stage 0   F0 0-2   F1 4-7   B0 8-12   B1 25-31
  //             stage 1   F0 2-4   B0 4-8   F1 16-19  B1 19-25
  //   rank 1    stage 0   F0 0-4   F1 4-7   B0 16-24  B1 25-31
  //             stage 1   F0 4-8   B0 8-16  F1 16-19  B1 19-25
  StepPlan plan =
      plan_of(2, {12, 24, 36}, {{group(0, 1, {0}), group(1, 1, {1})}, {group(0, 2, {2})}});
  plan.topology.pipeline = {.stages = 2};
  const Timeline timeline = simulate(plan);
  EXPECT_EQ(timeline.step_ns, 31);
  ASSERT_EQ(timeline.spans.size(), 16u);
  EXPECT_EQ(timeline.spans[1].begin_ns, 4);   // rank 0, stage 0, F1
  EXPECT_EQ(timeline.spans[6].begin_ns, 16);  // rank 0, stage 1, F1
}

TEST(GroupCost, RunsAtThePaceOfTheSlowestMember) {
  StepPlan plan = plan_of(3, {30}, {});
  plan.topology.rank_speed = {1, 0.5, 2};
  EXPECT_EQ(group_cost(plan, group(0, 1, {0})), 30);
  EXPECT_EQ(group_cost(plan, group(1, 1, {0})), 60);
  EXPECT_EQ(group_cost(plan, group(2, 1, {0})), 15);
  EXPECT_EQ(group_cost(plan, group(0, 3, {0})), 20);
  plan.options.pass = Pass::forward;
  EXPECT_EQ(group_cost(plan, group(1, 1, {0})), 20);
}

TEST(GroupCost, AddsExtraCostsAndPaddingRows) {
  StepPlan plan = plan_of(1, {30, 40}, {});
  plan.batch.extra_cost_ns = {5, 0};
  plan.padding_rows = 1;
  plan.cost.microbatch_ns = 100;
  EXPECT_EQ(group_cost(plan, group(0, 1, {0, 1, 2})), 100 + 35 + 40 + 2);
}

TEST(GroupCost, UsesTheExchangeNamedOrElseTheCheapest) {
  StepPlan plan = plan_of(4, {40}, {});
  const ContextLink link = {.max_ranks = 4, .gb_per_s = 1, .latency_us = 1};
  plan.cost.context = {
      {.kind = ContextKind::all_gather_kv, .bytes_per_token = 1, .links = {link}},
      {.kind = ContextKind::all_to_all, .bytes_per_token = 1, .divides = 4, .links = {link}}};
  // 40 / 4 + 40 * 3 / 4 and 40 / 4 + 40 * 3 / 16, and a microsecond of latency.
  EXPECT_EQ(group_cost(plan, group(0, 4, {0})), 1000 + 10 + 8);
  ContextGroup named = group(0, 4, {0});
  named.exchange = ContextKind::all_gather_kv;
  EXPECT_EQ(group_cost(plan, named), 1000 + 10 + 30);
  EXPECT_EQ(group_cost(plan, group(0, 3, {0})), 1000 + 40);  // 3 does not divide 4
  named.exchange = ContextKind::all_to_all;
  named.ranks.size = 3;
  EXPECT_EQ(message_of([&] { (void)group_cost(plan, named); }),
            "[simulate] the cost model has no exchange for ranks 0 to 2");
}

TEST(Simulate, NamesACostAndAStepAbove2To62) {
  StepPlan plan = plan_of(1, {1, 1}, {{group(0, 1, {0, 1})}});
  plan.batch.extra_cost_ns = {max_total_cost - 1, 0};
  EXPECT_EQ(message_of([&] { (void)simulate(plan); }),
            "[simulate] a micro-batch of rank 0 costs more than 2^62");
  plan.microbatches = {{group(0, 1, {0})}};
  EXPECT_EQ(simulate(plan).step_ns, max_total_cost);
  plan.topology.rank_speed = {0.5};
  EXPECT_EQ(message_of([&] { (void)simulate(plan); }),
            "[simulate] a micro-batch of rank 0 costs more than 2^62 at a speed of 0.5");
  plan.topology.rank_speed = {};
  plan.microbatches = {{group(0, 1, {0})}, {group(0, 1, {1})}};
  EXPECT_EQ(message_of([&] { (void)simulate(plan); }), "[simulate] the step takes more than 2^62");
  plan.cost.activation_bytes_per_token = 0x1p63;
  plan.microbatches = {{group(0, 1, {1})}};
  EXPECT_EQ(message_of([&] { (void)simulate(plan); }),
            "[simulate] the activations of rank 0 take more than 2^62 bytes");
}

TEST(Simulate, TwoRanksMayTogetherTakeMoreThanOneMay) {
  StepPlan plan = plan_of(2, {1, 1}, {{group(0, 1, {0})}, {group(1, 1, {1})}});
  plan.batch.extra_cost_ns = {max_total_cost - 1, max_total_cost - 1};
  EXPECT_EQ(simulate(plan).step_ns, max_total_cost);
}

// A plan of random groups in every slot. Without stages a rank may be left out.
StepPlan random_plan(std::uint64_t seed) {
  Random random(seed);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random.between(low, high));
  };
  const std::int32_t ranks = draw(1, 6);
  PipelineShape shape = {.stages = draw(1, 4)};
  std::int32_t num_slots = draw(0, 9);
  if (shape.stages > 1) {
    if (draw(0, 1) == 1) shape.transfer_ns = draw(0, 40);
    if (draw(0, 1) == 1) {
      shape.virtual_ = draw(2, 3);
      shape.group = draw(shape.stages, shape.stages + 2);
      num_slots = shape.group * draw(0, 2);
    }
  }
  std::vector<Tokens> lengths;
  std::vector<Slot> slots;
  for (std::int32_t i = 0; i < num_slots; ++i) {
    Slot& slot = slots.emplace_back();
    for (std::int32_t first = 0; first < ranks;) {
      const std::int32_t size = draw(1, ranks - first);
      if (shape.stages > 1 || draw(0, 4) > 0) {
        slot.push_back(group(first, size, {static_cast<std::int32_t>(lengths.size())}));
        lengths.push_back(draw(1, 500));
      }
      first += size;
    }
  }
  StepPlan plan = plan_of(ranks, lengths, slots);
  plan.topology.pipeline = shape;
  plan.cost.microbatch_ns = draw(0, 20);
  plan.cost.activation_bytes_per_token = 1;
  plan.options.pass = draw(0, 3) == 0 ? Pass::forward : Pass::train;
  return plan;
}

TEST(Simulate, EverySpanBeginsAsSoonAsItMay) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const StepPlan plan = random_plan(seed);
    const PipelineShape& shape = plan.topology.pipeline;
    const Timeline timeline = simulate(plan);
    const auto schedule = pipeline_schedule(
        shape, static_cast<std::int32_t>(plan.microbatches.size()), plan.options.pass);

    // Begin and end of each operation of a group; earliest begin by what was before on its ranks.
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Direction>;  // slot, group, ..
    std::map<Key, TimelineSpan> span_of;
    std::map<Key, Nanoseconds> earliest;
    std::size_t next = 0;
    for (std::int32_t rank = 0; rank < plan.topology.ranks; ++rank) {
      for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
        Nanoseconds free = 0;
        for (const PipelineOperation& operation : schedule[static_cast<std::size_t>(stage)]) {
          if (next == timeline.spans.size() || timeline.spans[next].rank != rank ||
              timeline.spans[next].stage != stage || timeline.spans[next].operation != operation) {
            ASSERT_EQ(shape.stages, 1);  // only then a rank may be left out
            continue;
          }
          const TimelineSpan& span = timeline.spans[next++];
          const Key key = {operation.slot, span.group, operation.chunk, operation.direction};
          const auto [place, is_fresh] = span_of.emplace(key, span);
          ASSERT_EQ(place->second.begin_ns, span.begin_ns);
          ASSERT_EQ(place->second.end_ns, span.end_ns);
          ASSERT_LE(free, span.begin_ns);
          earliest[key] = std::max(earliest[key], free);
          free = span.end_ns;
        }
      }
    }
    ASSERT_EQ(next, timeline.spans.size());
    for (const auto& [key, span] : span_of) {
      const auto& [slot, position, chunk, direction] = key;
      Nanoseconds begin = earliest[key];
      const bool is_forward = direction == Direction::forward;
      if (const std::int32_t before = is_forward ? chunk - 1 : chunk + 1;
          before >= 0 && before < shape.num_chunks()) {
        begin = std::max(
            begin, span_of.at({slot, position, before, direction}).end_ns + shape.transfer_ns);
      } else if (!is_forward) {
        begin = std::max(begin, span_of.at({slot, position, chunk, Direction::forward}).end_ns);
      }
      ASSERT_EQ(span.begin_ns, begin);
      const Nanoseconds cost = group_cost(
          plan,
          plan.microbatches[static_cast<std::size_t>(slot)][static_cast<std::size_t>(position)]);
      const PassCost parts = plan.options.pass == Pass::train
                                 ? split_cost(cost, plan.cost.forward_share)
                                 : PassCost{.forward = cost};
      ASSERT_EQ(span.end_ns - span.begin_ns,
                chunk_cost(shape, is_forward ? parts.forward : parts.backward, chunk));
    }
  }
}

TEST(Simulate, SyncMicrobatchNeverTakesLessThanSyncStep) {
  int num_slower = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StepPlan plan = random_plan(seed);
    const Nanoseconds free = simulate(plan).step_ns;
    plan.options.sync = Sync::microbatch;
    const Timeline timeline = simulate(plan);
    EXPECT_LE(free, timeline.step_ns);
    num_slower += free < timeline.step_ns ? 1 : 0;
    Nanoseconds last = 0;
    for (const TimelineSpan& span : timeline.spans) last = std::max(last, span.end_ns);
    EXPECT_EQ(timeline.step_ns, last);
  }
  EXPECT_GT(num_slower, 100);
}

TEST(Simulate, AgreesWithPipelineTimeOnEveryRankOfItsOwn) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StepPlan plan = random_plan(seed);
    plan.topology.ranks = 1;
    for (Slot& slot : plan.microbatches) {
      if (!slot.empty()) slot = {group(0, 1, {slot.front().sequences.front().value()})};
    }
    std::erase_if(plan.microbatches, [](const Slot& slot) { return slot.empty(); });
    std::vector<PassCost> costs;
    for (const Slot& slot : plan.microbatches) {
      const Nanoseconds cost = group_cost(plan, slot.front());
      costs.push_back(plan.options.pass == Pass::train ? split_cost(cost, plan.cost.forward_share)
                                                       : PassCost{.forward = cost});
    }
    PipelineTime time(plan.topology.pipeline, static_cast<std::int32_t>(costs.size()),
                      plan.options.pass);
    EXPECT_EQ(simulate(plan).step_ns, time.makespan(costs));
  }
}

}  // namespace
}  // namespace isochron
