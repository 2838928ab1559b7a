// The nine defects of the first dynamic context parallelism in verl (#5057), one test each. Where
// the defect is a rule, the test applies that rule too and sees it fail; where it is a matter of
// execution, tests/engine/mutations.py puts it back and expects this file or ContextEquality to
// fail. Number 7 is about runs: tests/engine/train/context_run_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "isochron/check/check.h"
#include "isochron/plan/plan.h"
#include "tests/engine/execute/plan_by_hand.h"
#include "tests/engine/execute/plan_equality.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using testing::Each;
using testing::IsEmpty;
using testing::Not;

CostModel plain_cost() {
  CostModel cost;
  cost.name = "plain";
  cost.linear_ns = 1000;
  cost.quadratic_ns = 1;
  cost.activation_bytes_per_token = 1;
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 10'000,
                   .links = {{.max_ranks = max_ranks, .gb_per_s = 10, .latency_us = 500}}}};
  return cost;
}

StepPlan planned(const std::vector<Tokens>& lengths, std::int32_t ranks, Tokens capacity) {
  Batch batch;
  batch.lengths = lengths;
  return plan_step(batch, {.ranks = ranks, .capacity = capacity}, plain_cost(),
                   {.context = "dynamic"});
}

// The rule of #5057 for one micro-batch: if there are fewer sequences than ranks all of them whole
// on every rank; else groups as large as the longest sequence needs, each with the next
// ceil(n / groups) sequences. (sequences, ranks of each group)
struct RuleGroup {
  std::int64_t first_rank = 0;
  std::int64_t num_ranks = 1;
  std::vector<Tokens> lengths = {};
  bool is_cut = true;
};
std::vector<RuleGroup> rule_of_5057(const std::vector<Tokens>& lengths, std::int64_t ranks,
                                    Tokens capacity) {
  const auto count = static_cast<std::int64_t>(lengths.size());
  if (count < ranks) return {{0, ranks, lengths, /*is_cut=*/false}};
  const Tokens longest = *std::ranges::max_element(lengths);
  const auto needed = static_cast<std::uint64_t>((longest + capacity - 1) / capacity);
  const auto size = static_cast<std::int64_t>(std::bit_ceil(needed));
  const std::int64_t num_groups = ranks / size;
  const std::int64_t share = (count + num_groups - 1) / num_groups;
  std::vector<RuleGroup> groups;
  for (std::int64_t i = 0; i < num_groups; ++i) {
    RuleGroup& group = groups.emplace_back(RuleGroup{i * size, size});
    for (std::int64_t k = i * share; k < std::min(count, (i + 1) * share); ++k) {
      group.lengths.push_back(lengths[static_cast<std::size_t>(k)]);
    }
  }
  return groups;
}

// Tokens that a rank of the plan holds at most.
Tokens most_held(const StepPlan& plan) {
  const std::vector<Tokens> lengths = all_lengths(plan);
  Tokens most = 0;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      Tokens padded = 0;
      for (const SequenceId sequence : group.sequences) {
        padded += padded_length(lengths[sequence.index()], group.ranks.size, 1);
      }
      most = std::max(most, padded / group.ranks.size);
    }
  }
  return most;
}

TEST(ContextDefects, Number1FewerSequencesThanRanksAreCutAllTheSame) {
  const std::vector<Tokens> lengths = {3900, 100};
  const RuleGroup rule = rule_of_5057(lengths, 4, 2000).front();
  EXPECT_FALSE(rule.is_cut);
  EXPECT_GT(rule.lengths.front(), 2000);  // on every rank
  const StepPlan plan = planned(lengths, 4, 2000);
  EXPECT_LE(most_held(plan), 2000);
  // What a rank puts through the model is what the plan says.
  const TokenRows rows = random_rows(lengths, tiny_vocabulary, 1);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    for (const Turn& turn : turns_of(plan, rank)) {
      const Microbatch microbatch =
          make_microbatch(rows.view(), *turn.group, rank, Labels::weighted, at::kCPU);
      EXPECT_LE(microbatch.input.tokens_T.numel(), 2000);
    }
  }
}

TEST(ContextDefects, Number2NoGroupIsEmptyWhereTheCountDoesNotDivide) {
  for (const int count : {9, 5}) {
    SCOPED_TRACE(count);
    const std::vector<Tokens> lengths(static_cast<std::size_t>(count), 100);
    EXPECT_THAT(rule_of_5057(lengths, 4, 200).back().lengths, IsEmpty());
    const StepPlan plan = planned(lengths, 4, 200);
    EXPECT_EQ(find_violation(to_json(plan)), std::nullopt);
    for (const Slot& slot : plan.microbatches) {
      for (const ContextGroup& group : slot) EXPECT_THAT(group.sequences, Not(IsEmpty()));
    }
  }
}

const std::vector<Tokens> hand_lengths = {12, 7, 21, 4};

TEST(ContextDefects, Number3LossAndGradientDoNotDependOnTheSizeOfGroups) {
  const std::vector<std::string> texts = run_ranks(4, [](World& world) {
    const TokenRows rows = random_rows(hand_lengths, tiny_vocabulary, 3);
    const std::vector<std::vector<std::vector<HandGroup>>> plans = {
        {{{0, 1, {0}}, {1, 1, {1}}, {2, 1, {2}}, {3, 1, {3}}}},  // all alone
        {{{0, 4, {0, 1, 2, 3}}}},                                // all together
        {{{0, 2, {0, 1}}, {2, 1, {3}}}, {{0, 4, {2}}}}};         // split and unsplit in one step
    std::vector<StepResult> results;
    for (const auto& slots : plans) {
      Decoder model = make_tiny_model({});
      ShardedAdamW optimizer(model.parameters(), world.all(), AdamWOptions{});
      Tracer tracer;
      Engine engine(world, model, &optimizer, plain_cost(), tracer, {});
      results.push_back(engine.train(1, plan_of(hand_lengths, 4, slots),
                                     {rows.view(), negative_log_prob()}, 1e-3));
    }
    for (const StepResult& result : results) {
      EXPECT_NEAR(result.loss, results.front().loss, 1e-6 * results.front().loss);
      EXPECT_NEAR(result.grad_norm, results.front().grad_norm, 1e-5 * results.front().grad_norm);
    }
  });
}

TEST(ContextDefects, Number4TheBudgetIsThatOfARankNotOfTheBatch) {
  // 8192 tokens fill two ranks of 4096; as a budget of the whole batch they would need two slots.
  const StepPlan plan = planned({6144, 2048}, 2, 4096);
  EXPECT_EQ(plan.microbatches.size(), 1);
  EXPECT_EQ(most_held(plan), 4096);
  EXPECT_EQ(find_violation(to_json(plan)), std::nullopt);
}

TEST(ContextDefects, Number5EachSequenceHasTheSizeItNeedsAndRanksAreBalanced) {
  const std::vector<Tokens> lengths = {8000, 1000, 900, 1100, 1000, 2000, 3000, 4000};
  const std::vector<RuleGroup> rule = rule_of_5057(lengths, 8, 4096);
  EXPECT_EQ(rule.size(), 4);  // pairs of ranks for all, 8000 and 1000 on the first
  std::vector<double> load;
  for (const RuleGroup& group : rule) {
    double cost = 0;
    for (const Tokens length : group.lengths) {
      const auto s = static_cast<double>(length);
      cost += (s * s + 1000 * s) / static_cast<double>(group.num_ranks);
    }
    load.push_back(cost);
  }
  const StepPlan plan = planned(lengths, 8, 4096);
  std::set<std::int64_t> sizes;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) sizes.insert(group.ranks.size);
  }
  EXPECT_GT(sizes.size(), 1);
  EXPECT_LT(static_cast<double>(plan.predicted_step_ns), 0.7 * std::ranges::max(load));
}

TEST(ContextDefects, Number6TrainingGathersNoOutputs) {
  const std::vector<std::string> texts =
      run_ranks(3,
                [](World& world) {
                  const std::vector<Tokens> lengths = {300, 200, 100};
                  const TokenRows rows = random_rows(lengths, tiny_vocabulary, 3);
                  Decoder model = make_tiny_model({});
                  ShardedAdamW optimizer(model.parameters(), world.all(), AdamWOptions{});
                  Tracer tracer;
                  Engine engine(world, model, &optimizer, plain_cost(), tracer, {});
                  const StepPlan plan = plan_of(lengths, 3, {{{0, 3, {0, 1}}}, {{0, 2, {2}}}});
                  (void)engine.train(1, plan, {rows.view(), negative_log_prob()}, 1e-3);
                  const std::set<std::string> known = {"open group",
                                                       "broadcast weights",
                                                       "compare plans",
                                                       "gather keys and values",
                                                       "sum gradients of keys and values",
                                                       "reduce",
                                                       "gradient norm",
                                                       "gather weights",
                                                       "exchange results"};
                  std::string unknown;
                  for (const IssuedCollective& issued : world.issued()) {
                    if (!known.contains(issued.operation)) unknown += issued.operation + "\n";
                  }
                  return unknown;
                },
                {.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}});
  EXPECT_THAT(texts, Each(""));
}

TEST(ContextDefects, Number8TheSizeOfAGroupHoldsForItsMicrobatchAlone) {
  run_ranks(3, [](World& world) {
    const TokenRows rows = random_rows(hand_lengths, tiny_vocabulary, 8);
    const StepPlan changing =
        plan_of(hand_lengths, 3, {{{0, 2, {0}}}, {{0, 1, {1}}}, {{0, 3, {2}}}, {{0, 1, {3}}}});
    train_and_compare(world, {{}, changing, rows});
  });
}

TEST(ContextDefects, Number9EveryPassUsesTheGroupsOfThePlan) {
  run_ranks(2, [](World& world) {
    const TokenRows rows = random_rows(hand_lengths, tiny_vocabulary, 9);
    const StepPlan together = plan_of(hand_lengths, 2, {{{0, 2, {0, 1, 2, 3}}}});
    const StepPlan alone = plan_of(hand_lengths, 2, {{{0, 1, {0, 1}}, {1, 1, {2, 3}}}});
    Decoder model = make_tiny_model({});
    Tracer tracer;
    Engine engine(world, model, nullptr, plain_cost(), tracer, {.head = {.entropy = true}});
    const Update update = {rows.view(), negative_log_prob()};
    EXPECT_NEAR(engine.evaluate(1, together, update).loss, engine.evaluate(1, alone, update).loss,
                1e-6);
    const auto of = [&](const StepPlan& plan) {
      return engine.gather_scores(plan, engine.scores(1, plan, rows.view()));
    };
    const std::vector<RowScores> one = of(together);
    const std::vector<RowScores> other = of(alone);
    for (std::size_t row = 0; row < hand_lengths.size(); ++row) {
      EXPECT_THAT(one[row].log_probs,
                  testing::Pointwise(testing::FloatNear(1e-5F), other[row].log_probs));
      EXPECT_THAT(one[row].entropies,
                  testing::Pointwise(testing::FloatNear(1e-5F), other[row].entropies));
    }
  });
}

}  // namespace
}  // namespace isochron
