#include "isochron/plan/baselines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/check/check.h"
#include "isochron/core/random.h"
#include "tests/support/message_of.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A token costs a nanosecond, and nothing is moved.
const CostModel token_cost = {.name = "tokens", .linear_ns = 1};

Batch batch_of(std::vector<Tokens> lengths) {
  Batch batch;
  batch.lengths = std::move(lengths);
  return batch;
}

std::vector<std::int32_t> numbers(const ContextGroup& group) {
  std::vector<std::int32_t> result;
  for (const SequenceId id : group.sequences) result.push_back(id.value());
  return result;
}

std::string violation_of(const StepPlan& plan) {
  return find_violation(to_json(plan)).value_or("");
}

TEST(NaivePlan, DealsTheInputInOrderAndPacksNextFit) {
  const StepPlan plan =
      naive_plan(batch_of({6, 5, 4, 5, 3}), {.ranks = 2, .capacity = 10}, token_cost);
  // Rank 0 has 0, 2, 4: 6 + 4, then 3. Rank 1 has 1 and 3: 5 + 5.
  ASSERT_EQ(plan.microbatches.size(), 2u);
  ASSERT_EQ(plan.microbatches[0].size(), 2u);
  EXPECT_THAT(numbers(plan.microbatches[0][0]), ElementsAre(0, 2));
  EXPECT_THAT(numbers(plan.microbatches[0][1]), ElementsAre(1, 3));
  ASSERT_EQ(plan.microbatches[1].size(), 1u);
  EXPECT_THAT(numbers(plan.microbatches[1][0]), ElementsAre(4));
  EXPECT_EQ(plan.predicted_step_ns, 13);
  EXPECT_EQ(plan.imbalance, 13 / 11.5);
  EXPECT_EQ(violation_of(plan), "");
}

TEST(NaivePlan, TakesTheSmallestStaticGroupsThatHoldTheLongest) {
  const PlanOptions dynamic = {.context = "dynamic"};
  const auto context = [&](Tokens longest) {
    return naive_plan(batch_of({longest, 3}), {.ranks = 12, .capacity = 10}, token_cost, dynamic)
        .options.context;
  };
  EXPECT_EQ(context(10), "static:1");
  EXPECT_EQ(context(11), "static:2");  // padded to 12, 6 each
  EXPECT_EQ(context(24), "static:3");  // 8 each
  EXPECT_EQ(context(100), "static:12");
}

TEST(NaivePlan, SkipsSizesThatTheCostModelDoesNotAdmit) {
  CostModel cost = token_cost;
  cost.context = {
      {.kind = ContextKind::all_to_all, .divides = 4, .links = {{.max_ranks = 64, .gb_per_s = 1}}}};
  const StepPlan plan =
      naive_plan(batch_of({24}), {.ranks = 12, .capacity = 10}, cost, {.context = "dynamic"});
  EXPECT_EQ(plan.options.context, "static:4");
  EXPECT_EQ(violation_of(plan), "");
}

TEST(NaivePlan, IsInvalidWhereASequenceExceedsTheCapacity) {
  const Topology topology = {.ranks = 2, .capacity = 10};
  EXPECT_THAT(violation_of(naive_plan(batch_of({4, 12, 3}), topology, token_cost)),
              HasSubstr("12"));
  const StepPlan alone =
      naive_plan(batch_of({4, 12, 3}), topology, token_cost, {.oversize = Oversize::alone});
  EXPECT_THAT(alone.oversized, ElementsAre(SequenceId(1)));
  EXPECT_EQ(violation_of(alone), "");
}

TEST(NaivePlan, ReachesEqualCountsByCuttingThenWithPlaceholders) {
  const StepPlan plan = naive_plan(batch_of({9, 1, 9, 1, 9}), {.ranks = 2, .capacity = 10},
                                   token_cost, {.counts = Counts::equal});
  // Rank 0 runs 9, 9, 9 one by one; rank 1 has two sequences for three slots.
  ASSERT_EQ(plan.microbatches.size(), 3u);
  EXPECT_THAT(numbers(plan.microbatches[0][1]), ElementsAre(1));
  EXPECT_THAT(numbers(plan.microbatches[1][1]), ElementsAre(3));
  EXPECT_THAT(numbers(plan.microbatches[2][1]), ElementsAre());
  EXPECT_EQ(violation_of(plan), "");
}

// Prompts of two answers each, one behind the other.
Batch prompts_of_two(std::vector<Tokens> lengths) {
  Batch batch = batch_of(std::move(lengths));
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    batch.groups.emplace_back(static_cast<std::int32_t>(i / 2));
    if (i % 2 == 0) batch.group_names.push_back(fmt::format("prompt {}", i / 2));
  }
  return batch;
}

TEST(NaivePlan, KeepsPromptGroupsOnTheirRanks) {
  const StepPlan plan = naive_plan(prompts_of_two({6, 5, 4, 5, 3, 2}), {.ranks = 2, .capacity = 10},
                                   token_cost, {.keep_groups = KeepGroups::rank});
  // Rank 0 has the prompts 0 and 2: 6, then 5 + 3 + 2. Rank 1 has prompt 1.
  ASSERT_EQ(plan.microbatches.size(), 2u);
  EXPECT_THAT(numbers(plan.microbatches[0][0]), ElementsAre(0));
  EXPECT_THAT(numbers(plan.microbatches[0][1]), ElementsAre(2, 3));
  EXPECT_THAT(numbers(plan.microbatches[1][0]), ElementsAre(1, 4, 5));
  EXPECT_EQ(plan.options.keep_groups, KeepGroups::rank);
  EXPECT_EQ(violation_of(plan), "");
}

TEST(NaivePlan, KeepsPromptGroupsInAMicrobatch) {
  const PlanOptions kept = {.keep_groups = KeepGroups::microbatch};
  const Batch batch = prompts_of_two({5, 4, 4, 5, 1, 2});
  const StepPlan plan = naive_plan(batch, {.ranks = 1, .capacity = 12}, token_cost, kept);
  ASSERT_EQ(plan.microbatches.size(), 2u);
  EXPECT_THAT(numbers(plan.microbatches[0][0]), ElementsAre(0, 1));
  EXPECT_THAT(numbers(plan.microbatches[1][0]), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(violation_of(plan), "");
  PlanOptions alone = kept;
  alone.oversize = Oversize::alone;
  const StepPlan over = naive_plan(batch, {.ranks = 1, .capacity = 8}, token_cost, alone);
  EXPECT_THAT(over.oversized,
              ElementsAre(SequenceId(0), SequenceId(1), SequenceId(2), SequenceId(3)));
  EXPECT_EQ(violation_of(over), "");
}

TEST(VerlPlan, BreaksWhatItDoesNotKnow) {
  const Batch batch = prompts_of_two({9, 8, 1, 2, 9, 8, 1, 2});
  const Topology topology = {.ranks = 2, .capacity = 20};
  EXPECT_THAT(
      violation_of(verl_plan(batch, topology, token_cost, {.keep_groups = KeepGroups::microbatch})),
      HasSubstr("must be on the same ranks in one slot"));
  EXPECT_THAT(violation_of(verl_plan(batch, topology, token_cost, {.max_sequences = 1})),
              HasSubstr("options.max_sequences is 1"));
}

TEST(VerlPlan, BalancesGroupsOfEqualSizeAndAgreesOnTheCount) {
  const StepPlan plan = verl_plan(batch_of({8, 7, 2, 1, 9, 3, 2, 2}), {.ranks = 2, .capacity = 10},
                                  token_cost, {}, 17);
  std::vector<std::size_t> sequences(2);
  std::vector<std::size_t> counts(2);
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      const auto rank = static_cast<std::size_t>(group.ranks.first);
      sequences[rank] += group.sequences.size();
      ++counts[rank];
    }
  }
  EXPECT_THAT(sequences, ElementsAre(4, 4));
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(plan.lower_bound_ns, 17);
  EXPECT_EQ(violation_of(plan), "");
}

TEST(VerlPlan, CarriesTheErrorThatVerlRaises) {
  const Topology topology = {.ranks = 2, .capacity = 10};
  const StepPlan uneven = verl_plan(batch_of({1, 2, 3}), topology, token_cost);
  EXPECT_EQ(uneven.status, Status::unknown);
  EXPECT_EQ(uneven.reason, "3 % 2 != 0");
  EXPECT_TRUE(uneven.microbatches.empty());
  EXPECT_EQ(verl_plan(batch_of({1, 12}), topology, token_cost).reason,
            "max_token_len must be greater than the sequence length. Got max_token_len=10 and "
            "max_seq_len=12");
}

TEST(Baselines, HaveNoBoundThatTheyBeat) {
  const StepPlan plan = naive_plan(batch_of({5}), {.ranks = 1, .capacity = 10}, token_cost, {}, 6);
  EXPECT_EQ(plan.lower_bound_ns, 0);
  EXPECT_EQ(plan.status, Status::feasible);
}

TEST(Baselines, NeedTheGroupsThatTheyAreToKeep) {
  const auto make = [] {
    (void)naive_plan(batch_of({1}), {.ranks = 1, .capacity = 10}, token_cost,
                     {.keep_groups = KeepGroups::rank});
  };
  EXPECT_EQ(message_of(make), "[plan] keep_groups is rank, but the batch has no groups");
}

TEST(Baselines, RejectAnEmptyBatch) {
  const auto make = [] { (void)naive_plan({}, {.ranks = 1, .capacity = 10}, token_cost); };
  EXPECT_EQ(message_of(make), "[plan] the batch is empty, must have a sequence");
}

TEST(Baselines, AreValidOnRandomBatches) {
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Topology topology = {.ranks = static_cast<std::int32_t>(1 + random.below(12)),
                         .capacity = 4096};
    PlanOptions options;
    options.context = random.below(2) == 0 ? "dynamic" : "static:1";
    if (random.below(3) == 0) {
      topology.pipeline = {.stages = 2, .virtual_ = 2, .group = 3};
    } else if (random.below(2) == 0) {
      options.sync = Sync::microbatch;
    }
    options.tensor_parallel = static_cast<std::int32_t>(1 + random.below(2));
    options.pad_multiple = topology.ranks;
    Batch batch;
    const auto count = 1 + random.below(60);
    for (std::uint64_t i = 0; i < count; ++i) {
      batch.lengths.push_back(random.between(1, 4096));
    }
    if (options.context == "dynamic") batch.lengths[0] = random.between(1, 4096 * topology.ranks);
    const CostModel cost = cost_preset("qwen3-8b_h100");
    const StepPlan naive = naive_plan(batch, topology, cost, options);
    EXPECT_EQ(violation_of(naive), "");
    Batch prompts = prompts_of_two(batch.lengths);
    PlanOptions kept = options;
    kept.keep_groups = random.below(2) == 0 ? KeepGroups::rank : KeepGroups::microbatch;
    kept.oversize = Oversize::alone;  // a prompt may be more than one rank holds
    EXPECT_EQ(violation_of(naive_plan(prompts, topology, cost, kept)), "");
    const StepPlan verl = verl_plan(batch, topology, cost, options);
    if (!verl.microbatches.empty()) {
      EXPECT_EQ(violation_of(verl), "");
    }
  }
}

}  // namespace
}  // namespace isochron
