#include "tests/engine/execute/plan_equality.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/check/check.h"
#include "tests/engine/execute/plan_by_hand.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

StepPlan random_plan_for(std::int32_t ranks, std::uint64_t seed) {
  return random_plan(seed, {.ranks = ranks,
                            .context = "static:1",
                            .pass = Pass::train,
                            .keep_groups = KeepGroups::none,
                            .oversize = Oversize::error,
                            .short_ = Short::empty,
                            .tensor_parallel = 1,
                            .stages = 1,
                            .virtual_ = 1,
                            .capacity = 48,
                            .num_sequences = 14});
}

void train_random_plans(World& world) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", ranks " << world.place().size);
    const StepPlan plan = random_plan_for(world.place().size, seed);
    ASSERT_EQ(find_violation(to_json(plan)), std::nullopt);
    const TinyModel model = {
        .tied = seed % 2 == 0, .seed = seed, .recompute = static_cast<Recompute>(seed % 3)};
    const double dropout = seed % 4 < 2 ? 0.1 : 0;
    train_and_compare(
        world, {model, plan, random_rows(plan.batch.lengths, tiny_vocabulary, seed), {}, dropout});
  }
}

void train_forced_cases(World& world) {
  const std::vector<Tokens> lengths = {9, 1, 5, 2, 7};
  const TokenRows rows = random_rows(lengths, tiny_vocabulary, 5);
  {
    SCOPED_TRACE("different counts, a sequence of one token alone");
    const StepPlan plan = one_rank_groups(lengths, 2, {{{0, 3}, {1}}, {{2}, {}}, {{4}, {}}});
    train_and_compare(world, {{}, plan, rows});
  }
  {
    SCOPED_TRACE("a rank without work");
    const StepPlan plan = one_rank_groups(lengths, 2, {{{}, {0, 1, 2}}, {{}, {3, 4}}});
    train_and_compare(world, {{.tied = true}, plan, rows});
  }
  {
    SCOPED_TRACE("nothing trained on one rank");
    TokenRows half = rows;
    for (const std::size_t row : {0, 1, 2}) std::ranges::fill(half.loss_mask[row], 0);
    const StepPlan plan = one_rank_groups(lengths, 2, {{{0, 1, 2}, {3, 4}}});
    train_and_compare(world, {{}, plan, half});
  }
  {
    SCOPED_TRACE("padding rows, beside others and alone");
    StepPlan plan = one_rank_groups(lengths, 2, {{{0, 5, 1}, {6}}, {{2}, {3, 4}}});
    plan.padding_rows = 2;
    train_and_compare(world, {{}, plan, rows, {}, 0.1});
  }
  {
    SCOPED_TRACE("one slot, everything on it");
    train_and_compare(world, {{}, one_rank_groups(lengths, 2, {{{0, 1, 2}, {3, 4}}}), rows});
  }
}

TEST(PlanEquality, HoldsForRandomPlansOnOneRank) { run_ranks(1, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnTwoRanks) { run_ranks(2, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnThreeRanks) { run_ranks(3, train_random_plans); }
TEST(PlanEquality, HoldsForRandomPlansOnFourRanks) { run_ranks(4, train_random_plans); }
TEST(PlanEquality, HoldsForForcedCases) { run_ranks(2, train_forced_cases); }

TEST(PlanEquality, RanksWithDifferentPlansStopWithTheSameMessage) {
  run_ranks(3, [](World& world) {
    const std::vector<Tokens> lengths = {3, 4, 5};
    const StepPlan plan = world.place().rank == 2 ? one_rank_groups(lengths, 3, {{{0}, {1}, {2}}})
                                                  : one_rank_groups(lengths, 3, {{{1}, {0}, {2}}});
    Decoder model = make_tiny_model({});
    Tracer tracer;
    Engine engine(world, model, nullptr, plan.cost, tracer, {});
    const TokenRows rows = random_rows(lengths, tiny_vocabulary, 1);
    try {
      (void)engine.evaluate(7, plan, {rows.view(), negative_log_prob()});
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(),
                   "[engine] the plan of step 7 differs between ranks: that of rank 0 from that of "
                   "2");
    }
  });
}

TEST(PlanEquality, OneRankThatWantsToStopStopsAll) {
  run_ranks(3, [](World& world) {
    const std::vector<Tokens> lengths = {3, 4, 5};
    const StepPlan plan = one_rank_groups(lengths, 3, {{{0}, {1}, {2}}});
    Decoder model = make_tiny_model({});
    Tracer tracer;
    Engine engine(world, model, nullptr, plan.cost, tracer, {});
    const TokenRows rows = random_rows(lengths, tiny_vocabulary, 1);
    (void)engine.evaluate(1, plan, {rows.view(), negative_log_prob()});
    EXPECT_FALSE(engine.stop_agreed());
    if (world.place().rank == 1) engine.ask_to_stop();
    EXPECT_FALSE(engine.stop_agreed());
    (void)engine.evaluate(2, plan, {rows.view(), negative_log_prob()});
    EXPECT_TRUE(engine.stop_agreed());
  });
}

}  // namespace
}  // namespace isochron
