#include "isochron/check/plan_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "isochron/check/plan_cost.h"
#include "tests/check/plans.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

using check::PlanTimes;

PlanTimes times_of(const StepPlan& plan) { return check::plan_times(check::PlanView(plan)); }

// One sequence per rank and slot, as long as it takes: costs[slot][rank].
StepPlan plan_of(const std::vector<std::vector<Tokens>>& costs, const PipelineShape& pipeline,
                 const PlanOptions& options = {}) {
  StepPlan plan;
  plan.topology = {
      .ranks = static_cast<std::int32_t>(costs[0].size()), .capacity = 1000, .pipeline = pipeline};
  plan.options = resolved(options, plan.topology);
  plan.cost = token_cost();
  for (const std::vector<Tokens>& of_rank : costs) {
    Slot& slot = plan.microbatches.emplace_back();
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      const SequenceId id(static_cast<std::int32_t>(plan.batch.lengths.size()));
      plan.batch.lengths.push_back(of_rank[rank]);
      slot.push_back({.ranks = {static_cast<std::int64_t>(rank), 1}, .sequences = {id}});
    }
  }
  return plan;
}

// Three ranks: 10 on rank 0 beside 8 on ranks 1 and 2, then 10 on ranks 0 and 1 beside 8 on rank 2.
StepPlan crossing_plan(Sync sync) {
  StepPlan plan;
  plan.topology = {.ranks = 3, .capacity = 100};
  plan.options =
      resolved({.context = "dynamic:any", .sync = sync, .counts = Counts::equal}, plan.topology);
  plan.cost = token_cost();
  plan.batch.lengths = {10, 8, 10, 8};
  plan.microbatches = {{group_of(0, 1, {0}), group_of(1, 2, {1})},
                       {group_of(0, 2, {2}), group_of(2, 1, {3})}};
  return plan;
}

TEST(CheckPlanTime, AGroupStartsWhenItsLastMemberIsFree) {
  const PlanTimes times = times_of(crossing_plan(Sync::step));
  EXPECT_EQ(times.step_ns, 15);                        // rank 1 is free at 4, rank 0 at 10
  EXPECT_DOUBLE_EQ(times.imbalance, 15 / (36.0 / 3));  // busy 15, 9 and 12
  EXPECT_EQ(times.peak_activation_bytes, (std::vector<std::int64_t>{30, 18, 24}));
}

TEST(CheckPlanTime, AllRanksWaitForTheSlowestGroupOfASlotIfAsked) {
  const PlanTimes times = times_of(crossing_plan(Sync::microbatch));
  EXPECT_EQ(times.step_ns, 18);  // 10 and 8
  EXPECT_DOUBLE_EQ(times.imbalance, 15 / (36.0 / 3));
}

TEST(CheckPlanTime, AGroupIsAsFastAsItsSlowestRank) {
  StepPlan plan = crossing_plan(Sync::step);
  plan.topology.rank_speed = {2, 0.5, 1};
  EXPECT_EQ(times_of(plan).step_ns, 18);  // 5 and 8, then 10 from 8 on; rank 2: 8 and 8
}

TEST(CheckPlanTime, ARankOfFullSpeedBesideASlowOneIsTimedExactly) {
  StepPlan plan = plan_of({{1, 1}}, {});
  plan.topology.rank_speed = {1, 0.5};
  const Nanoseconds odd = (std::int64_t{1} << 60) + 1;  // not a double
  plan.batch.extra_cost_ns = {odd, 0};
  EXPECT_EQ(times_of(plan).step_ns, odd + 1);
}

TEST(CheckPlanTime, AForwardPassTakesTheForwardShare) {
  StepPlan plan = crossing_plan(Sync::step);
  plan.options.pass = Pass::forward;
  plan.cost.forward_share = 0.26;
  EXPECT_EQ(times_of(plan).step_ns, 4);  // 2.6 and 1.3 rounded
}

TEST(CheckPlanTime, LatencyCountsOncePerGroupAndTrafficPerSequence) {
  StepPlan plan = crossing_plan(Sync::step);
  plan.cost.microbatch_ns = 1;
  plan.cost.context = {{.kind = ContextKind::all_gather_kv,
                        .bytes_per_token = 4,
                        .links = {{2, 2, 0.1}, {4, 1, 0.2}}}};
  // Ranks 1 and 2 are in different blocks of two: 8*4/2 bytes at 1/ns. Ranks 0 and 1 share one.
  EXPECT_EQ(times_of(plan).step_ns, (1 + 200 + 4 + 16) + (1 + 100 + 5 + 10));
}

TEST(CheckPlanTime, EqualSlotsTakeTheTextbookTimeInAPipeline) {
  // (m + p - 1) (f + b) with m = 3 slots, p = 2 stages, f = b = 2.
  EXPECT_EQ(times_of(plan_of({{8}, {8}, {8}}, {.stages = 2})).step_ns, 16);
}

TEST(CheckPlanTime, TransfersDelayTheNextChunkEitherWay) {
  // Stage 0: F0 0-2, F1 2-4, B0 8-10, F2 10-12, B1 12-14, B2 18-20
  // Stage 1: F0 3-5, B0 5-7, F1 7-9, B1 9-11, F2 13-15, B2 15-17
  EXPECT_EQ(times_of(plan_of({{8}, {8}, {8}}, {.stages = 2, .transfer_ns = 1})).step_ns, 20);
}

TEST(CheckPlanTime, PipelinesOfDifferentRanksRunApartUnlessTheyWaitAfterEverySlot) {
  const std::vector<std::vector<Tokens>> costs = {{8, 16}, {16, 8}};
  EXPECT_EQ(times_of(plan_of(costs, {.stages = 2})).step_ns, 18);
  EXPECT_EQ(times_of(plan_of(costs, {.stages = 2}, {.sync = Sync::microbatch})).step_ns, 24);
}

TEST(CheckPlanTime, InterleavedStagesFollowMegatron) {
  const StepPlan plan = plan_of({{8}, {8}}, {.stages = 2, .virtual_ = 2, .group = 2});
  const PlanTimes times = times_of(plan);
  // Stage 0: F0c0 0-1 F1c0 1-2 F0c2 2-3 F1c2 3-4 B0c2 5-6 B1c2 7-8 B0c0 8-9 B1c0 9-10
  // Stage 1: F0c1 1-2 F1c1 2-3 F0c3 3-4 B0c3 4-5 F1c3 5-6 B1c3 6-7 B0c1 7-8 B1c1 8-9
  EXPECT_EQ(times.step_ns, 10);
  EXPECT_EQ(times.peak_activation_bytes, (std::vector<std::int64_t>{24}));  // 4 quarters of 24
}

TEST(CheckPlanTime, ChunksTakeTheirSharesRoundedUp) {
  // Forward and backward 4: 1.2 and 2.8, so 2 and 3 each.
  EXPECT_EQ(times_of(plan_of({{8}}, {.stages = 2, .shares = {0.3, 0.7}})).step_ns, 10);
}

TEST(CheckPlanTime, AForwardPassOverStagesTakesItsSumAndTheLargestOncePerFurtherStage) {
  for (const auto& costs : std::vector<std::vector<std::vector<Tokens>>>{
           {{8}, {16}, {8}}, {{16}, {8}, {8}}, {{8}, {8}, {16}}}) {
    EXPECT_EQ(times_of(plan_of(costs, {.stages = 2}, {.pass = Pass::forward})).step_ns, 8 + 4);
  }
}

TEST(CheckPlanTime, EarlyStagesHoldMoreSlots) {
  // Stage 0 holds two halves of 24 bytes, stage 1 one; the fullest counts.
  EXPECT_EQ(times_of(plan_of({{8}, {8}, {8}}, {.stages = 2})).peak_activation_bytes,
            (std::vector<std::int64_t>{24}));
  // A forward pass holds one at a time.
  EXPECT_EQ(
      times_of(plan_of({{8}, {8}}, {.stages = 2}, {.pass = Pass::forward})).peak_activation_bytes,
      (std::vector<std::int64_t>{12}));
}

TEST(CheckPlanTime, MemoryCountsPaddedTokens) {
  StepPlan plan = crossing_plan(Sync::step);
  plan.options.tensor_parallel = 4;
  // 10 pads to 12 alone and to 16 on two ranks; 8 to 8 and to 16.
  EXPECT_EQ(times_of(plan).peak_activation_bytes, (std::vector<std::int64_t>{36, 24, 24}));
}

// The same rules as equations: an operation ends one duration after the last of what it waits for.
// Applied to all operations until nothing changes. Slow, and unlike an event loop.
class Equations {
 public:
  explicit Equations(const StepPlan& plan) : plan_(plan), shape_(plan.topology.pipeline) {}

  Nanoseconds step_ns() {
    list_groups();
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage) list_order(stage);
    Nanoseconds last = 0;
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
        std::vector<Nanoseconds> free_at(static_cast<std::size_t>(plan_.topology.ranks));
        for (const auto& [slot, chunk, is_backward] : orders_[static_cast<std::size_t>(stage)]) {
          for (std::size_t i = 0; i < groups_[slot].size(); ++i) {
            const auto& [ranks, cost] = groups_[slot][i];
            Nanoseconds begin = arrival(slot, i, chunk, is_backward);
            for (std::int64_t r = ranks.first; r < ranks.first + ranks.size; ++r) {
              begin = std::max(begin, free_at[static_cast<std::size_t>(r)]);
            }
            const Nanoseconds end = begin + duration(cost, chunk, is_backward);
            for (std::int64_t r = ranks.first; r < ranks.first + ranks.size; ++r) {
              free_at[static_cast<std::size_t>(r)] = end;
            }
            Nanoseconds& known = end_of_[{slot, i, chunk, is_backward}];
            has_changed |= known != end;
            known = end;
            last = std::max(last, end);
          }
        }
      }
    }
    return last;
  }

 private:
  struct Operation {
    std::size_t slot;
    std::int32_t chunk;
    bool is_backward;
  };

  void list_groups() {
    const check::PlanView view(plan_);
    for (const Slot& slot : plan_.microbatches) {
      auto& groups = groups_.emplace_back();
      Nanoseconds slowest = 0;
      for (const ContextGroup& group : slot) {
        groups.emplace_back(group.ranks, check::cost_in_pass(view, group));
        slowest = std::max(slowest, groups.back().second);
      }
      if (plan_.options.sync == Sync::microbatch) {
        groups = {{RankRange{0, plan_.topology.ranks}, slowest}};
      }
    }
  }

  // Megatron-LM's table: all (slot, chunk) in the order of the forwards; backwards turn the chunks
  // around.
  void list_order(std::int32_t stage) {
    const auto num_slots = static_cast<std::int32_t>(groups_.size());
    std::vector<std::pair<std::size_t, std::int32_t>> table;
    for (std::int32_t first = 0; first < num_slots; first += shape_.group) {
      for (std::int32_t v = 0; v < shape_.virtual_; ++v) {
        for (std::int32_t slot = first; slot < first + shape_.group; ++slot) {
          table.emplace_back(static_cast<std::size_t>(slot), v);
        }
      }
    }
    auto& order = orders_.emplace_back();
    const auto forward = [&](std::size_t k) {
      order.push_back({table[k].first, table[k].second * shape_.stages + stage, false});
    };
    const auto backward = [&](std::size_t k) {
      const std::int32_t v = shape_.virtual_ - 1 - table[k].second;
      order.push_back({table[k].first, v * shape_.stages + stage, true});
    };
    std::size_t warm_up = static_cast<std::size_t>(shape_.stages - stage - 1);
    if (shape_.virtual_ > 1) {
      warm_up = warm_up * 2 + static_cast<std::size_t>((shape_.virtual_ - 1) * shape_.group);
    }
    const bool is_train = plan_.options.pass == Pass::train;
    if (!is_train || warm_up > table.size()) warm_up = table.size();
    for (std::size_t k = 0; k < warm_up; ++k) forward(k);
    if (!is_train) return;
    for (std::size_t k = warm_up; k < table.size(); ++k) {
      forward(k);
      backward(k - warm_up);
    }
    for (std::size_t k = table.size() - warm_up; k < table.size(); ++k) backward(k);
  }

  Nanoseconds arrival(std::size_t slot, std::size_t i, std::int32_t chunk, bool is_backward) {
    const std::int32_t last = shape_.num_chunks() - 1;
    if (!is_backward) {
      return chunk == 0 ? 0 : end_of_[{slot, i, chunk - 1, false}] + shape_.transfer_ns;
    }
    if (chunk == last) return end_of_[{slot, i, chunk, false}];
    return end_of_[{slot, i, chunk + 1, true}] + shape_.transfer_ns;
  }

  Nanoseconds duration(Nanoseconds cost, std::int32_t chunk, bool is_backward) const {
    Nanoseconds part = cost;
    if (plan_.options.pass == Pass::train) {
      const Nanoseconds forward =
          std::llround(plan_.cost.forward_share * static_cast<double>(cost));
      part = is_backward ? cost - forward : forward;
    }
    if (shape_.shares.empty()) return (part + shape_.num_chunks() - 1) / shape_.num_chunks();
    const double share = shape_.shares[static_cast<std::size_t>(chunk)];
    return static_cast<Nanoseconds>(std::ceil(share * static_cast<double>(part)));
  }

  const StepPlan& plan_;
  const PipelineShape& shape_;
  std::vector<std::vector<std::pair<RankRange, Nanoseconds>>> groups_;  // of each slot
  std::vector<std::vector<Operation>> orders_;                          // of each stage
  std::map<std::tuple<std::size_t, std::size_t, std::int32_t, bool>, Nanoseconds> end_of_;
};

TEST(CheckPlanTime, SolvesTheEquationsOfRandomPlans) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const StepPlan plan = random_plan(seed, {.stages = static_cast<std::int32_t>(1 + seed % 4)});
    ASSERT_EQ(plan.predicted_step_ns, Equations(plan).step_ns());
  }
}

}  // namespace
}  // namespace isochron
