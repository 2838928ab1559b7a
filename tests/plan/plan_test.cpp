// Plans that are small enough to check by eye, the edges of what may be asked, and what is said
// where there is no plan.

#include "isochron/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A token costs a nanosecond, a micro-batch nothing, and nothing is moved.
const CostModel token_cost = {.name = "tokens", .linear_ns = 1};

Batch batch_of(std::vector<Tokens> lengths) {
  Batch batch;
  batch.lengths = std::move(lengths);
  return batch;
}

// Sequences of the prompt groups `names`, one letter each.
Batch batch_of(std::vector<Tokens> lengths, const std::string& names) {
  Batch batch = batch_of(std::move(lengths));
  for (const char letter : names) {
    const std::string name(1, letter);
    const auto known = std::find(batch.group_names.begin(), batch.group_names.end(), name);
    batch.groups.emplace_back(static_cast<std::int32_t>(known - batch.group_names.begin()));
    if (known == batch.group_names.end()) batch.group_names.push_back(name);
  }
  return batch;
}

// The plan, valid by the independent checker.
StepPlan plan_of(const Batch& batch, const Topology& topology, const PlanOptions& options = {},
                 const CostModel& cost = token_cost) {
  StepPlan plan = plan_step(batch, topology, cost, options);
  EXPECT_EQ(find_violation(to_json(plan), &batch).value_or("valid"), "valid") << to_json(plan);
  return plan;
}

std::vector<std::int32_t> numbers(const std::vector<SequenceId>& ids) {
  std::vector<std::int32_t> result;
  for (const SequenceId id : ids) result.push_back(id.value());
  return result;
}

// The group that runs a sequence.
ContextGroup group_of(const StepPlan& plan, std::int32_t sequence) {
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      if (std::count(group.sequences.begin(), group.sequences.end(), SequenceId(sequence)) > 0) {
        return group;
      }
    }
  }
  ADD_FAILURE() << "sequence " << sequence << " runs nowhere";
  return {};
}

// Tokens that each rank runs, where groups have one rank.
std::vector<Tokens> tokens_of_ranks(const StepPlan& plan) {
  std::vector<Tokens> tokens(static_cast<std::size_t>(plan.topology.ranks));
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      for (const SequenceId id : group.sequences) {
        tokens[static_cast<std::size_t>(group.ranks.first)] += plan.batch.lengths[id.index()];
      }
    }
  }
  return tokens;
}

std::size_t num_placeholders(const StepPlan& plan) {
  std::size_t count = 0;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) count += group.sequences.empty() ? 1 : 0;
  }
  return count;
}

// --- by hand

TEST(Plan, GivesEveryRankTheSameWork) {
  // Longest first puts 5 3 on one rank and 4 3 3 on the other.
  const StepPlan plan = plan_of(batch_of({5, 4, 3, 3, 3}), {.ranks = 2, .capacity = 10});
  EXPECT_EQ(plan.status, Status::optimal);
  EXPECT_EQ(plan.predicted_step_ns, 9);
  EXPECT_EQ(plan.lower_bound_ns, 9);
  EXPECT_EQ(plan.imbalance, 1);
  EXPECT_THAT(tokens_of_ranks(plan), ElementsAre(9, 9));
}

TEST(Plan, CutsTheWorkOfARankByTheCapacity) {
  CostModel cost = token_cost;
  cost.microbatch_ns = 100;
  // Nine tokens a rank, in micro-batches of five: two of them, not three.
  const StepPlan plan = plan_of(batch_of({5, 4, 4, 5}), {.ranks = 2, .capacity = 5}, {}, cost);
  EXPECT_EQ(plan.microbatches.size(), 2u);
  EXPECT_EQ(plan.predicted_step_ns, 209);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, PutsLongBesideLongWhereAllRanksWaitForASlot) {
  const StepPlan plan =
      plan_of(batch_of({10, 1, 1, 10}), {.ranks = 2, .capacity = 10}, {.sync = Sync::microbatch});
  ASSERT_EQ(plan.microbatches.size(), 2u);
  EXPECT_EQ(plan.predicted_step_ns, 11);  // 10 beside 10, 1 beside 1
  EXPECT_EQ(plan.status, Status::optimal);
}

// Two sequences of six tokens never share a micro-batch of ten: the bound knows that, by volume
// there were room for more.
TEST(Plan, CountsSlotsByWhatCanShareThem) {
  CostModel cost = token_cost;
  cost.microbatch_ns = 100;
  const StepPlan plan = plan_of(batch_of(std::vector<Tokens>(40, 6)), {.ranks = 2, .capacity = 10},
                                {.sync = Sync::microbatch}, cost);
  EXPECT_EQ(plan.predicted_step_ns, 20 * 106);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, SharesALongSequenceAmongTheRanksItNeeds) {
  const StepPlan plan =
      plan_of(batch_of({40}), {.ranks = 4, .capacity = 10}, {.context = "dynamic"});
  EXPECT_EQ(group_of(plan, 0).ranks, (RankRange{.first = 0, .size = 4}));
  EXPECT_EQ(plan.predicted_step_ns, 10);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, RunsShortSequencesBesideALongOne) {
  // 24 on two ranks of twelve each, and twelve on each of the others.
  const StepPlan plan =
      plan_of(batch_of({24, 12, 7, 5}), {.ranks = 4, .capacity = 12}, {.context = "dynamic"});
  EXPECT_EQ(group_of(plan, 0).ranks.size, 2);
  EXPECT_EQ(plan.predicted_step_ns, 12);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, TakesGroupsOfThreeRanksOnlyIfAnySizeIsAllowed) {
  const Batch batch = batch_of({30, 10});
  const Topology topology = {.ranks = 4, .capacity = 10};
  const StepPlan any = plan_of(batch, topology, {.context = "dynamic:any"});
  EXPECT_EQ(group_of(any, 0).ranks.size, 3);
  EXPECT_EQ(any.predicted_step_ns, 10);
  const StepPlan aligned = plan_of(batch, topology, {.context = "dynamic"});
  EXPECT_EQ(group_of(aligned, 0).ranks.size, 4);
  EXPECT_EQ(aligned.predicted_step_ns, 11);  // 7.5 is 8, and 2.5 is 3
}

TEST(Plan, TakesPowersOfTwoAndAllRanksWhereMegatronHasGroupsForNoOthers) {
  const Topology topology = {.ranks = 12, .capacity = 12};
  const auto sizes_of = [&](const std::vector<Tokens>& lengths) {
    std::set<std::int64_t> sizes;
    const StepPlan plan = plan_of(batch_of(lengths), topology, {.context = "dynamic:powers"});
    for (const Slot& slot : plan.microbatches) {
      for (const ContextGroup& group : slot) sizes.insert(group.ranks.size);
    }
    return sizes;
  };
  EXPECT_EQ(sizes_of({24, 24, 24, 24, 24, 24}), (std::set<std::int64_t>{2}));
  EXPECT_EQ(sizes_of({36, 36, 36}), (std::set<std::int64_t>{4}));  // not 3
  EXPECT_EQ(sizes_of({72}), (std::set<std::int64_t>{12}));         // neither 6 nor 8
}

TEST(Plan, CutsRanksIntoStaticGroups) {
  const StepPlan plan =
      plan_of(batch_of({8, 6, 2}), {.ranks = 4, .capacity = 10}, {.context = "static:2"});
  EXPECT_EQ(plan.predicted_step_ns, 4);
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      EXPECT_EQ(group.ranks.size, 2);
      EXPECT_EQ(group.ranks.first % 2, 0);
    }
  }
}

TEST(Plan, FillsAPipelineWithMoreMicrobatchesThanTheCapacityAsksFor) {
  const StepPlan plan =
      plan_of(batch_of({6, 6, 6, 6}), {.ranks = 1, .capacity = 24, .pipeline = {.stages = 2}});
  // Each takes 3 on a stage, forward and backward: 4 * 3, and 3 to fill and drain.
  EXPECT_EQ(plan.microbatches.size(), 4u);
  EXPECT_EQ(plan.predicted_step_ns, 15);
}

TEST(Plan, ARankOfHalfSpeedGetsHalfOfTheWork) {
  const StepPlan plan = plan_of(batch_of(std::vector<Tokens>(30, 1)),
                                {.ranks = 2, .capacity = 100, .rank_speed = {0.5, 1}});
  EXPECT_THAT(tokens_of_ranks(plan), ElementsAre(10, 20));
  EXPECT_EQ(plan.predicted_step_ns, 20);
}

TEST(Plan, ARankOfHalfSpeedKeepsUpInEverySlot) {
  std::vector<Tokens> lengths(24, 80);
  lengths.resize(32, 40);
  const StepPlan plan =
      plan_of(batch_of(lengths), {.ranks = 4, .capacity = 80, .rank_speed = {1, 0.5, 1, 1}},
              {.sync = Sync::microbatch});
  // The slow rank runs a 40 in each of eight slots of 80.
  EXPECT_EQ(plan.predicted_step_ns, 640);
}

TEST(Plan, AForwardPassTakesAThirdOfTheTime) {
  const Batch batch = batch_of({300, 300, 600});
  const Topology topology = {.ranks = 2, .capacity = 600};
  EXPECT_EQ(plan_of(batch, topology).predicted_step_ns, 600);
  EXPECT_EQ(plan_of(batch, topology, {.pass = Pass::forward}).predicted_step_ns, 200);
}

TEST(Plan, DealsInOrderIfNotToldToBalance) {
  const StepPlan plan =
      plan_of(batch_of({9, 1, 9, 1}), {.ranks = 2, .capacity = 100}, {.balance = false});
  EXPECT_THAT(tokens_of_ranks(plan), ElementsAre(18, 2));
  EXPECT_EQ(plan.predicted_step_ns, 18);
  EXPECT_EQ(plan.imbalance, 1.8);
}

TEST(Plan, DealsWhatNeedsSeveralRanksOntoGroupsThatHoldIt) {
  const Batch batch = batch_of({90, 10, 250, 10, 90});
  const StepPlan plan =
      plan_of(batch, {.ranks = 4, .capacity = 100}, {.context = "dynamic", .balance = false});
  EXPECT_EQ(find_violation(to_json(plan), &batch).value_or("valid"), "valid");
  std::int64_t widest = 0;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) widest = std::max(widest, group.ranks.size);
  }
  EXPECT_EQ(widest, 4);
}

TEST(Plan, HoldsFewSequencesInAMicrobatchIfTold) {
  const StepPlan plan = plan_of(batch_of(std::vector<Tokens>(8, 1)), {.ranks = 2, .capacity = 100},
                                {.max_sequences = 2});
  EXPECT_EQ(plan.microbatches.size(), 2u);
}

TEST(Plan, CountsTokensPaddedForTensorParallelism) {
  // 5 tokens take 8 of the capacity: two of them do not fit into 10.
  const StepPlan plan =
      plan_of(batch_of({5, 5}), {.ranks = 1, .capacity = 10}, {.tensor_parallel = 4});
  EXPECT_EQ(plan.microbatches.size(), 2u);
  EXPECT_EQ(plan.predicted_step_ns, 10);  // real tokens
}

TEST(Plan, KeepsGroupsOfRanksWithinTheirLimits) {
  const Topology topology = {.ranks = 8, .capacity = 100};
  const StepPlan wide =
      plan_of(batch_of({8, 8}), topology, {.context = "dynamic", .min_context_size = 4});
  EXPECT_GE(group_of(wide, 0).ranks.size, 4);
  const StepPlan narrow =
      plan_of(batch_of({80}), topology, {.context = "dynamic", .max_context_size = 2});
  EXPECT_LE(group_of(narrow, 0).ranks.size, 2);
}

TEST(Plan, KeepsAPromptGroupOnItsRanksOrInItsMicrobatch) {
  const Batch batch = batch_of({6, 3, 6, 3}, "abab");
  const Topology topology = {.ranks = 2, .capacity = 6};
  const StepPlan on_rank = plan_of(batch, topology, {.keep_groups = KeepGroups::rank});
  EXPECT_EQ(on_rank.predicted_step_ns, 12);  // alone it would be 9
  EXPECT_EQ(group_of(on_rank, 0).ranks, group_of(on_rank, 2).ranks);
  const StepPlan together =
      plan_of(batch, {.ranks = 2, .capacity = 12}, {.keep_groups = KeepGroups::microbatch});
  EXPECT_EQ(group_of(together, 0), group_of(together, 2));
  EXPECT_EQ(group_of(together, 1), group_of(together, 3));
}

TEST(Plan, AddsExtraCostsToTheirSequences) {
  Batch batch = batch_of({1, 1, 1, 1});
  batch.extra_cost_ns = {30, 0, 0, 0};
  const StepPlan plan = plan_of(batch, {.ranks = 2, .capacity = 10});
  EXPECT_EQ(plan.predicted_step_ns, 31);
  EXPECT_THAT(tokens_of_ranks(plan), UnorderedElementsAre(1, 3));
}

TEST(Plan, NamesTheExchangeOfAGroupWhereThereIsAChoice) {
  CostModel cost = token_cost;
  const std::vector<ContextLink> links = {{.max_ranks = 64, .gb_per_s = 1}};
  cost.context = {
      {.kind = ContextKind::all_gather_kv, .bytes_per_token = 1, .links = links},
      {.kind = ContextKind::all_to_all, .bytes_per_token = 1.5, .divides = 2, .links = links}};
  const PlanOptions options = {.context = "dynamic"};
  // Of two ranks each gathers 8 bytes or exchanges 6; four ranks are too many for an exchange.
  const StepPlan two = plan_of(batch_of({16}), {.ranks = 2, .capacity = 8}, options, cost);
  EXPECT_EQ(group_of(two, 0).exchange, ContextKind::all_to_all);
  EXPECT_EQ(two.predicted_step_ns, 14);
  const StepPlan four = plan_of(batch_of({32}), {.ranks = 4, .capacity = 8}, options, cost);
  EXPECT_EQ(group_of(four, 0).exchange, ContextKind::all_gather_kv);
  const StepPlan one = plan_of(batch_of({5}), {.ranks = 1, .capacity = 8}, options, cost);
  EXPECT_EQ(group_of(one, 0).exchange, std::nullopt);
  cost.context.pop_back();
  const StepPlan single = plan_of(batch_of({16}), {.ranks = 2, .capacity = 8}, options, cost);
  EXPECT_EQ(group_of(single, 0).exchange, std::nullopt);
}

// --- policies

TEST(Plan, RunsAnOversizedSequenceAloneIfTold) {
  const StepPlan plan =
      plan_of(batch_of({4, 15, 3}), {.ranks = 2, .capacity = 10}, {.oversize = Oversize::alone});
  EXPECT_THAT(numbers(plan.oversized), ElementsAre(1));
  EXPECT_THAT(numbers(group_of(plan, 1).sequences), ElementsAre(1));
  EXPECT_EQ(group_of(plan, 1).ranks.size, 1);
  const StepPlan wide = plan_of(batch_of({4, 25, 3}), {.ranks = 2, .capacity = 10},
                                {.context = "dynamic", .oversize = Oversize::alone});
  EXPECT_THAT(numbers(wide.oversized), ElementsAre(1));
  EXPECT_EQ(group_of(wide, 1).ranks.size, 2);
}

TEST(Plan, FillsEqualCountsAsShortSays) {
  const Batch batch = batch_of({4, 4, 4});
  const auto plan = [&](Short short_) {
    return plan_of(batch, {.ranks = 2, .capacity = 4}, {.counts = Counts::equal, .short_ = short_});
  };
  EXPECT_EQ(plan(Short::empty).microbatches.size(), 2u);
  EXPECT_EQ(num_placeholders(plan(Short::empty)), 1u);
  EXPECT_EQ(plan(Short::error).status, Status::infeasible);
  EXPECT_EQ(plan(Short::error).reason,
            "3 sequences cannot fill equally many slots on 2 ranks without placeholders");
  EXPECT_THAT(numbers(plan(Short::drop).dropped), ElementsAre(2));
  EXPECT_EQ(num_placeholders(plan(Short::drop)), 0u);
  EXPECT_EQ(plan(Short::drop).predicted_step_ns, 4);
}

TEST(Plan, DropsWholePromptGroups) {
  const StepPlan plan = plan_of(
      batch_of({2, 2, 2, 2, 2, 2}, "abacbc"), {.ranks = 2, .capacity = 4},
      {.counts = Counts::equal, .short_ = Short::drop, .keep_groups = KeepGroups::microbatch});
  EXPECT_THAT(numbers(plan.dropped), ElementsAre(3, 5));
}

// One after the other these would be thousands of questions.
TEST(Plan, DropsThousandsAtOnce) {
  const StepPlan plan =
      plan_of(batch_of(std::vector<Tokens>(39'999, 4)), {.ranks = 4000, .capacity = 4},
              {.counts = Counts::equal, .max_sequences = 1, .short_ = Short::drop});
  EXPECT_EQ(plan.microbatches.size(), 9u);
  ASSERT_EQ(plan.dropped.size(), 3999u);
  EXPECT_EQ(plan.dropped.front().value(), 36'000);
}

TEST(Plan, DropsUntilWhatIsLeftDivides) {
  const auto plan = [](std::size_t num_rows, std::int32_t ranks, Pad pad) {
    return plan_of(batch_of(std::vector<Tokens>(num_rows, 4)), {.ranks = ranks, .capacity = 4},
                   {.counts = Counts::equal,
                    .max_sequences = 1,
                    .short_ = Short::drop,
                    .pad = pad,
                    .pad_multiple = 3});
  };
  const StepPlan rows = plan(7, 2, Pad::rows);  // 9 rows are odd, as are those of fewer, but 6
  EXPECT_THAT(numbers(rows.dropped), ElementsAre(6));
  EXPECT_EQ(rows.padding_rows, 0);
  const StepPlan added = plan(10, 4, Pad::rows);
  EXPECT_THAT(added.dropped, ElementsAre());
  EXPECT_EQ(added.padding_rows, 2);
  const StepPlan whole = plan(18, 5, Pad::error);
  EXPECT_THAT(numbers(whole.dropped), ElementsAre(15, 16, 17));
  const StepPlan none = plan(12, 5, Pad::error);
  EXPECT_EQ(none.status, Status::infeasible);
  EXPECT_EQ(none.reason,
            "12 sequences cannot fill equally many slots on 5 ranks without placeholders, in "
            "multiples of 3 rows");
  const StepPlan few = plan(2, 2, Pad::rows);
  EXPECT_EQ(few.status, Status::infeasible);
  EXPECT_EQ(few.padding_rows, 1);
}

// Fewer groups of rows may need more rows that are added, which fill slots as well.
TEST(Plan, DropsGroupsUntilAddedRowsFillTheSlots) {
  const StepPlan plan =
      plan_of(batch_of({1, 1, 1, 1, 1, 1, 1, 1, 1}, "aaaabbbcc"), {.ranks = 4, .capacity = 4},
              {.counts = Counts::equal,
               .short_ = Short::drop,
               .keep_groups = KeepGroups::microbatch,
               .pad_multiple = 3});
  EXPECT_EQ(plan.status, Status::optimal);
  EXPECT_THAT(numbers(plan.dropped), ElementsAre(7, 8));
  EXPECT_EQ(plan.padding_rows, 2);
}

// Rows that would have to be added may not fit where the rows of the input do.
TEST(Plan, DropsRowsUntilNoneIsAddedThatDoesNotFit) {
  const auto plan = [](Short short_) {
    return plan_of(batch_of(std::vector<Tokens>(18, 1)), {.ranks = 5, .capacity = 1},
                   {.counts = Counts::equal, .short_ = short_, .pad_multiple = 3});
  };
  EXPECT_THAT(numbers(plan(Short::drop).dropped), ElementsAre(15, 16, 17));
  EXPECT_EQ(plan(Short::drop).padding_rows, 0);
  EXPECT_EQ(plan(Short::error).status, Status::infeasible);
  EXPECT_EQ(plan_of(batch_of({1, 1}), {.ranks = 5, .capacity = 1},
                    {.counts = Counts::equal, .short_ = Short::drop, .pad_multiple = 3})
                .reason,
            "a padding row of 2 tokens needs more than the capacity 1 on each of 1 ranks, the most "
            "that a group may have");
}

// Without an answer nothing is dropped, and all rows are padded.
TEST(Plan, PadsAllRowsWhereThereIsNoAnswer) {
  const StepPlan plan =
      plan_of(batch_of({8, 1, 6, 6, 7, 2, 1, 3, 2, 3, 4, 4, 3, 5}),
              {.ranks = 2, .capacity = 8, .pipeline = {.stages = 2, .virtual_ = 2, .group = 2}},
              {.max_sequences = 1,
               .short_ = Short::drop,
               .pad = Pad::rows,
               .pad_multiple = 3,
               .max_activation_bytes = 20'054'016},
              cost_preset("qwen3-8b_h100"));
  EXPECT_TRUE(plan.microbatches.empty());
  EXPECT_EQ(plan.padding_rows, 1);
}

TEST(Plan, SplitsAMicrobatchBeforeItTakesAPlaceholder) {
  const StepPlan plan =
      plan_of(batch_of({4, 2, 2}), {.ranks = 3, .capacity = 4}, {.sync = Sync::microbatch});
  EXPECT_EQ(num_placeholders(plan), 0u);
  EXPECT_EQ(plan.microbatches.size(), 1u);
}

TEST(Plan, AddsRowsUntilTheirNumberDivides) {
  const Batch batch = batch_of({9, 9, 9});
  const StepPlan plan = plan_of(batch, {.ranks = 2, .capacity = 20}, {.pad_multiple = 4});
  EXPECT_EQ(plan.options.pad, Pad::rows);
  EXPECT_EQ(plan.padding_rows, 1);
  EXPECT_EQ(group_of(plan, 3).ranks.size, 1);
  EXPECT_EQ(plan_of(batch, {.ranks = 2, .capacity = 20}, {.pad = Pad::uneven, .pad_multiple = 4})
                .padding_rows,
            0);
  const StepPlan none =
      plan_of(batch, {.ranks = 2, .capacity = 20}, {.pad = Pad::error, .pad_multiple = 4});
  EXPECT_EQ(none.status, Status::infeasible);
  EXPECT_EQ(none.reason, "3 rows are not a multiple of 4");
  EXPECT_EQ(plan_of(batch_of({1}), {.ranks = 2, .capacity = 1}, {.pad_multiple = 4}).reason,
            "a padding row of 2 tokens needs more than the capacity 1 on each of 1 ranks, the most "
            "that a group may have");
}

// --- edges

TEST(Plan, OneSequenceOnOneRank) {
  const StepPlan plan = plan_of(batch_of({1}), {.ranks = 1, .capacity = 1});
  EXPECT_EQ(plan.status, Status::optimal);
  EXPECT_EQ(plan.predicted_step_ns, 1);
  EXPECT_THAT(plan.microbatches,
              ElementsAre(Slot{{.ranks = {0, 1}, .sequences = {SequenceId(0)}}}));
}

TEST(Plan, MoreRanksThanSequencesLeavesRanksOut) {
  const StepPlan plan = plan_of(batch_of({5, 5}), {.ranks = 5, .capacity = 5});
  EXPECT_EQ(plan.microbatches.size(), 1u);
  EXPECT_EQ(plan.microbatches[0].size(), 2u);
  EXPECT_EQ(plan.predicted_step_ns, 5);
  EXPECT_EQ(plan.imbalance, 2.5);
}

TEST(Plan, EqualSequencesAreDealtEvenly) {
  const StepPlan plan = plan_of(batch_of(std::vector<Tokens>(12, 7)), {.ranks = 4, .capacity = 7});
  EXPECT_THAT(tokens_of_ranks(plan), Each(21));
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, AGiantDecidesAlone) {
  std::vector<Tokens> lengths(20, 3);
  lengths[7] = 1000;
  const StepPlan plan = plan_of(batch_of(lengths), {.ranks = 4, .capacity = 1000});
  EXPECT_EQ(plan.predicted_step_ns, 1000);
  EXPECT_EQ(plan.status, Status::optimal);
}

TEST(Plan, ACapacityOfOneTakesATokenAtATime) {
  const StepPlan plan = plan_of(batch_of({1, 1, 1}), {.ranks = 2, .capacity = 1});
  EXPECT_EQ(plan.microbatches.size(), 2u);
  EXPECT_EQ(plan.predicted_step_ns, 2);
}

TEST(Plan, CostsMayComeCloseToTheLimit) {
  Batch batch = batch_of({1, 1});
  const Nanoseconds half = max_total_cost / 2;
  batch.extra_cost_ns = {half - 1000, half - 1000};
  const StepPlan plan = plan_of(batch, {.ranks = 2, .capacity = 2});
  EXPECT_EQ(plan.predicted_step_ns, half - 999);
  EXPECT_EQ(plan.status, Status::optimal);
  const StepPlan one = plan_of(batch, {.ranks = 1, .capacity = 2});
  EXPECT_EQ(one.predicted_step_ns, 2 * (half - 999));
}

TEST(Plan, RejectsCostsOverTheLimit) {
  Batch batch = batch_of({1, 1});
  batch.extra_cost_ns = {max_total_cost / 2, max_total_cost / 2};
  EXPECT_EQ(message_of([&] { (void)plan_step(batch, {.ranks = 2, .capacity = 2}, token_cost); }),
            "[plan] the costs up to sequence 1 add up to more than 2^62");
  batch.extra_cost_ns = {0, max_total_cost};
  EXPECT_EQ(message_of([&] { (void)plan_step(batch, {.ranks = 2, .capacity = 2}, token_cost); }),
            "[plan] sequence 1 of 1 tokens costs more than 2^62");
  // So they may on a slow rank, and on the way through a pipeline.
  batch.extra_cost_ns = {max_total_cost / 8, 0};
  const auto message = [&](const Topology& topology) {
    return message_of([&] { (void)plan_step(batch, topology, token_cost); });
  };
  EXPECT_EQ(message({.ranks = 2, .capacity = 2, .rank_speed = {1, 0.125}}),
            "[plan] the costs up to sequence 0 add up to more than 2^62");
  EXPECT_EQ(message({.ranks = 2,
                     .capacity = 2,
                     .pipeline = {.stages = 2, .transfer_ns = max_total_cost / 4}}),
            "[plan] the costs up to sequence 0 add up to more than 2^62");
}

TEST(Plan, RejectsAnEmptyBatchAndListsThatDoNotMatch) {
  const Topology topology = {.ranks = 1, .capacity = 10};
  const auto message = [&](const Batch& batch, const PlanOptions& options = {}) {
    return message_of([&] { (void)plan_step(batch, topology, token_cost, options); });
  };
  EXPECT_EQ(message({}), "[plan] there are no sequences, must be at least 1");
  EXPECT_EQ(message(batch_of({3, 0})), "[plan] lengths[1] is 0, must be from 1 to 2147483647");
  Batch batch = batch_of({3, 4});
  batch.extra_cost_ns = {1};
  EXPECT_EQ(message(batch), "[plan] extra_cost_ns has 1 values, must have 2 as there are lengths");
  EXPECT_EQ(message(batch_of({3}), {.keep_groups = KeepGroups::rank}),
            "[plan] keep_groups is rank, but the batch has no groups");
  Batch nameless = batch_of({3, 4});
  nameless.groups = {PromptGroupId(0), PromptGroupId(1)};
  nameless.group_names = {"a"};
  EXPECT_EQ(message(nameless, {.keep_groups = KeepGroups::rank}),
            "[plan] groups[1] is 1, but there are 1 group_names");
}

TEST(Plan, RejectsOptionsThatContradictEachOther) {
  const auto message = [](const PlanOptions& options,
                          Topology topology = {.ranks = 4, .capacity = 10}) {
    return message_of([&] { (void)plan_step(batch_of({3}), topology, token_cost, options); });
  };
  EXPECT_EQ(message({.context = "static:3"}),
            "[plan] context is static:3, must divide the 4 ranks");
  EXPECT_EQ(message({.context = "ring"}),
            "[plan] context is \"ring\", must be static:C, dynamic, dynamic:powers or dynamic:any");
  EXPECT_EQ(message({.sync = Sync::microbatch, .counts = Counts::free}),
            "[plan] counts is free, must be equal with sync microbatch");
  EXPECT_EQ(
      message({.counts = Counts::free}, {.ranks = 4, .capacity = 10, .pipeline = {.stages = 2}}),
      "[plan] counts is free, must be equal with several stages");
  EXPECT_EQ(message({.oversize = Oversize::widen}),
            "[plan] oversize is widen, must be error or alone with context static:1");
  EXPECT_EQ(message({.min_context_size = 2}),
            "[plan] min_context_size and max_context_size need a dynamic context, not static:1");
  EXPECT_EQ(message({.context = "dynamic", .max_context_size = 5}),
            "[plan] max_context_size is 5, must be 0 or from the minimum 1 to the 4 ranks");
  EXPECT_EQ(message({.effort = -1}), "[plan] effort is -1, must be at least 0");
  EXPECT_EQ(message({}, {.ranks = 0, .capacity = 10}), "[plan] ranks is 0, must be 1 to 1048576");
  EXPECT_EQ(message({}, {.ranks = 4, .capacity = 0}), "[plan] capacity is 0, must be at least 1");
  EXPECT_EQ(message({}, {.ranks = 4, .capacity = 10, .rank_speed = {1, 1}}),
            "[plan] rank_speed has 2 numbers, must be one for each of the 4 ranks");
}

// --- no plan

TEST(Plan, SaysInWordsWhyThereIsNone) {
  const auto reason = [](const Batch& batch, const PlanOptions& options,
                         const CostModel& cost = token_cost) {
    const StepPlan plan = plan_of(batch, {.ranks = 2, .capacity = 10}, options, cost);
    EXPECT_EQ(plan.status, Status::infeasible);
    EXPECT_THAT(plan.microbatches, IsEmpty());
    EXPECT_EQ(plan.predicted_step_ns, 0);
    EXPECT_EQ(plan.lower_bound_ns, 0);
    return plan.reason;
  };
  EXPECT_EQ(reason(batch_of({3, 11}), {}),
            "sequence 1 of 11 tokens needs more than the capacity 10 on each of 1 ranks, the most "
            "that a group may have");
  EXPECT_EQ(reason(batch_of({21}), {.context = "dynamic"}),
            "sequence 0 of 21 tokens needs more than the capacity 10 on each of 2 ranks, the most "
            "that a group may have");
  EXPECT_EQ(reason(batch_of({6, 2, 6}, "aba"), {.keep_groups = KeepGroups::microbatch}),
            "the group of sequence 0, 2 sequences of 12 tokens, needs more than the capacity 10 on "
            "each of 1 ranks, the most that a group may have");
  EXPECT_EQ(
      reason(batch_of({1, 1}, "aa"), {.max_sequences = 1, .keep_groups = KeepGroups::microbatch}),
      "the group of sequence 0, 2 sequences of 2 tokens, exceeds max_sequences 1");
  CostModel cost = token_cost;
  cost.context.clear();
  EXPECT_EQ(reason(batch_of({3}), {.context = "static:2"}, cost),
            "the cost model admits no group that context static:2 allows");
  EXPECT_EQ(reason(batch_of({3}), {.context = "static:2", .oversize = Oversize::alone}, cost),
            "the cost model admits no group that context static:2 allows");
  EXPECT_EQ(reason(batch_of({11}), {.context = "dynamic", .oversize = Oversize::alone}, cost),
            "sequence 0 of 11 tokens exceeds the capacity 10 and cannot run alone: the cost model "
            "has no exchange for all 2 ranks");
}

TEST(Plan, IsInfeasibleIfOneSequenceHoldsTooManyActivations) {
  CostModel cost = token_cost;
  cost.activation_bytes_per_token = 2;
  const auto plan = [&](std::int64_t max_bytes) {
    return plan_of(batch_of({15}), {.ranks = 1, .capacity = 10},
                   {.oversize = Oversize::alone, .max_activation_bytes = max_bytes}, cost);
  };
  EXPECT_EQ(plan(30).status, Status::optimal);
  EXPECT_EQ(plan(29).status, Status::infeasible);
  EXPECT_EQ(plan(29).reason,
            "sequence 0 of 15 tokens holds at least 30 activation bytes on a stage, "
            "max_activation_bytes is 29");
}

TEST(Plan, NeverWidensForMemoryWhatFitsTheCapacity) {
  CostModel cost = token_cost;
  cost.activation_bytes_per_token = 1;
  const auto plan = [&](Tokens length) {
    return plan_of(batch_of({length}), {.ranks = 3, .capacity = 16},
                   {.context = "dynamic",
                    .max_context_size = 1,
                    .oversize = Oversize::alone,
                    .max_activation_bytes = 12},
                   cost);
  };
  EXPECT_EQ(plan(13).status, Status::infeasible);
  EXPECT_EQ(plan(13).reason,
            "sequence 0 of 13 tokens holds at least 13 activation bytes on a stage, "
            "max_activation_bytes is 12");
  EXPECT_EQ(plan(12).status, Status::optimal);
  EXPECT_EQ(plan(17).oversized.size(), 1u);  // alone on all ranks, 6 tokens each
}

}  // namespace
}  // namespace isochron
