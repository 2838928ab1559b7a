// Plans with groups of any size, mixed within a slot, against the one-rank reference
// (plan_equality.h). Every run records its collectives, and the order checker goes over them.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "isochron/check/check.h"
#include "tests/engine/execute/plan_by_hand.h"
#include "tests/engine/execute/plan_equality.h"
#include "tests/support/collective_order.h"
#include "tests/support/process_ranks.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

// Runs `body` on ranks that record what they issue, and checks the order of all of it.
template <class Body>
void run_in_order(std::int32_t num_ranks, Body body) {
  const RankOptions options = {
      .limit = std::chrono::seconds{400},
      .world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}};
  const std::vector<std::string> texts = run_ranks(
      num_ranks,
      [&](World& world) {
        body(world);
        return issued_text(world.issued());
      },
      options);
  std::vector<std::vector<IssuedCollective>> issued;
  for (const std::string& text : texts) issued.push_back(issued_from_text(text));
  EXPECT_EQ(find_order_violation(issued), std::nullopt);
}

// Both exchanges, at prices that make a plan use either; all_to_all for the two key and value heads
// of the model.
CostModel two_exchanges() {
  CostModel cost;
  cost.name = "two exchanges";
  cost.linear_ns = 1000;
  cost.quadratic_ns = 1;
  cost.activation_bytes_per_token = 100;
  const std::vector<ContextLink> links = {{.max_ranks = 2, .gb_per_s = 10, .latency_us = 1},
                                          {.max_ranks = max_ranks, .gb_per_s = 1, .latency_us = 5}};
  cost.context = {
      {.kind = ContextKind::all_gather_kv, .bytes_per_token = 1000, .links = links},
      {.kind = ContextKind::all_to_all, .bytes_per_token = 1500, .divides = 2, .links = links}};
  return cost;
}

StepPlan random_grouped_plan(std::int32_t ranks, std::uint64_t seed) {
  RandomPlanShape shape = {.ranks = ranks,
                           .pass = Pass::train,
                           .keep_groups = KeepGroups::none,
                           .short_ = Short::empty,
                           .tensor_parallel = 1,
                           .stages = 1,
                           .virtual_ = 1,
                           .capacity = 24,
                           .cost = two_exchanges(),
                           .num_sequences = 10};
  if (seed % 3 == 0) shape.context = "dynamic";
  if (seed % 3 == 1) shape.context = "dynamic:any";  // else whatever is drawn
  return random_plan(seed, shape);
}

void train_random_plans(World& world) {
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", ranks " << world.place().size);
    const StepPlan plan = random_grouped_plan(world.place().size, seed);
    ASSERT_EQ(find_violation(to_json(plan)), std::nullopt);
    const TinyModel model = {.tied = seed % 2 == 0,
                             .seed = seed,
                             .dtype = seed % 4 == 0 ? at::kDouble : at::kFloat,
                             .recompute = static_cast<Recompute>(seed % 3)};
    // All heads at once, or one at a time.
    const ContextOptions context = {.gather_bytes = seed % 2 == 0 ? 1 << 20 : 1};
    const double dropout = seed % 4 < 2 ? 0.1 : 0;
    train_and_compare(world, {model, plan, random_rows(plan.batch.lengths, tiny_vocabulary, seed),
                              context, dropout});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ContextEquality, HoldsForRandomPlansOnOneRank) { run_in_order(1, train_random_plans); }
TEST(ContextEquality, HoldsForRandomPlansOnTwoRanks) { run_in_order(2, train_random_plans); }
TEST(ContextEquality, HoldsForRandomPlansOnThreeRanks) { run_in_order(3, train_random_plans); }
TEST(ContextEquality, HoldsForRandomPlansOnFourRanks) { run_in_order(4, train_random_plans); }
TEST(ContextEquality, HoldsForRandomPlansOnFiveRanks) { run_in_order(5, train_random_plans); }
TEST(ContextEquality, HoldsForRandomPlansOnSixRanks) { run_in_order(6, train_random_plans); }

// The generator draws what these rest on: they would prove nothing without it.
TEST(ContextEquality, RandomPlansHaveMixedSizesBothExchangesAndPlaceholders) {
  bool has_mixed = false;
  bool has_placeholder = false;
  std::set<ContextKind> exchanges;
  std::set<std::int64_t> sizes;
  for (const std::int32_t ranks : {2, 3, 4, 5, 6}) {
    for (std::uint64_t seed = 0; seed < 9; ++seed) {
      for (const Slot& slot : random_grouped_plan(ranks, seed).microbatches) {
        for (const ContextGroup& group : slot) {
          has_mixed = has_mixed || group.ranks.size != slot.front().ranks.size;
          has_placeholder = has_placeholder || group.sequences.empty();
          sizes.insert(group.ranks.size);
          if (group.ranks.size > 1) exchanges.insert(group.exchange.value());
        }
      }
    }
  }
  EXPECT_TRUE(has_mixed);
  EXPECT_TRUE(has_placeholder);
  EXPECT_EQ(exchanges.size(), 2);
  EXPECT_EQ(sizes, (std::set<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

const std::vector<Tokens> lengths = {19, 1, 5, 2, 33};

void train_by_hand(std::int32_t ranks, const std::vector<std::vector<HandGroup>>& slots,
                   const TokenRows& rows = random_rows(lengths, tiny_vocabulary, 5)) {
  run_in_order(ranks, [&](World& world) {
    StepPlan plan = plan_of(lengths, ranks, slots);
    plan.cost = two_exchanges();
    train_and_compare(world, {{}, plan, rows, {}, /*dropout=*/0.1});
  });
}

TEST(ContextEquality, HoldsWhereAllRanksAreOneGroup) {
  train_by_hand(4, {{{0, 4, {0, 1, 2, 3, 4}}}});
}

TEST(ContextEquality, HoldsForOddSizesSideBySide) {
  train_by_hand(5, {{{0, 3, {0, 1}}, {3, 2, {2}}}, {{0, 5, {3, 4}}}});
}

TEST(ContextEquality, HoldsForSequencesShorterThanTheirChunks) {
  train_by_hand(6, {{{0, 6, {1, 3}}}, {{0, 6, {2}}}, {{0, 2, {0}}, {2, 4, {4}}}});
}

TEST(ContextEquality, HoldsWhereARankHasNothingToDo) {
  train_by_hand(3, {{{0, 2, {0, 1, 2}}}, {{0, 2, {3, 4}}}});
}

TEST(ContextEquality, HoldsWithPlaceholdersAndDifferentCounts) {
  train_by_hand(4, {{{0, 2, {0}}, {2, 1, {}}, {3, 1, {1, 2}}}, {{1, 3, {4}}}, {{0, 1, {3}}}});
}

// Rank 1 goes from one group to another: only the last may sum gradients while it computes.
TEST(ContextEquality, HoldsWhereGroupsOfARankOverlap) {
  train_by_hand(3, {{{0, 2, {0, 1}}, {2, 1, {2}}}, {{1, 2, {4}}}, {{0, 1, {3}}}});
}

TEST(ContextEquality, HoldsForBothExchangesInOneSlot) {
  train_by_hand(
      4, {{{0, 2, {0, 1}, ContextKind::all_to_all}, {2, 2, {2, 4}, ContextKind::all_gather_kv}},
          {{0, 2, {3}, ContextKind::all_gather_kv}}});
}

TEST(ContextEquality, HoldsWhereAMemberHasNoTrainedToken) {
  TokenRows rows = random_rows(lengths, tiny_vocabulary, 5);
  for (auto& mask : rows.loss_mask) std::ranges::fill(mask, 0);
  rows.loss_mask[4].back() = 1;  // on the first rank of the group, with the first tokens
  train_by_hand(3, {{{0, 3, {0, 1, 2, 3, 4}}}}, rows);
}

}  // namespace
}  // namespace isochron
