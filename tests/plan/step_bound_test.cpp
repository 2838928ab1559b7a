// What no step can beat, by hand; tests/plan/plan_oracle_test.cpp has it beside exhaustive search.

#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bounds/share_rule.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/equal_search.h"
#include "isochron/plan/steps/step_search.h"
#include "tests/plan/singles.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// A nanosecond a token, 100 for a micro-batch, and 10 for a token that another rank must see.
CostModel dear_microbatches() {
  CostModel cost;
  cost.linear_ns = 1;
  cost.microbatch_ns = 100;
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 10,
                   .links = {{.max_ranks = 64, .gb_per_s = 1}}}};
  return cost;
}

// Two sequences of 12 tokens need two ranks each and share no micro-batch of 20 tokens: 66 and 100
// on both ranks, twice. Ten of 2 tokens fill a micro-batch of each rank: 10 and 100. The large ones
// are seen by their number, the small ones by their volume.
TEST(StepBound, EverySizeCountsItsMicrobatchesInItsOwnWay) {
  const Topology topology{.ranks = 2, .capacity = 10};
  const Problem problem(singles({12, 12, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}), topology,
                        dear_microbatches(), resolved({.context = "dynamic"}, topology));
  EXPECT_EQ(step_bound(problem), 442);
  EXPECT_EQ(search_step(problem, 442, 10'000).time, 442);
}

// Nine sequences of 5 tokens on two ranks, one of them with 95 more. Both ranks with three
// micro-batches would end at 370. One does with two, which hold 20 tokens: 115 with the dear one.
// The other has 25 tokens and three micro-batches.
TEST(StepBound, ARankWithFewMicrobatchesNeedsWhatIsDense) {
  const Topology topology{.ranks = 2, .capacity = 10};
  Work work = singles({5, 5, 5, 5, 5, 5, 5, 5, 5});
  work.extra_costs = {95, 0, 0, 0, 0, 0, 0, 0, 0};
  const Problem problem(work, topology, dear_microbatches(),
                        resolved({.context = "static:1"}, topology));
  EXPECT_EQ(step_bound(problem), 325);
  EXPECT_EQ(search_step(problem, 325, 10'000).time, 325);
}

// On a rank of speed 1.25 a micro-batch of 3 ns takes 2.4 and is rounded to 2, one of 6 to 5: two
// of them end before one.
TEST(StepBound, EveryMicrobatchOfAFastRankIsRounded) {
  const Topology topology{.ranks = 1, .capacity = 10, .rank_speed = {1.25}};
  const Problem problem(singles({3, 3}), topology, plain_cost(0),
                        resolved({.context = "static:1"}, topology));
  EXPECT_LE(step_bound(problem), 4);
  EXPECT_LE(equal_step_bound(problem), 4);
}

// Groups of four and eight exchange for less than those of three and six, and a long sequence needs
// six ranks at least: short ones may stand beside it in groups that are not the smallest.
TEST(StepBound, NoStepBeatsItWhereLargerGroupsExchangeForLess) {
  CostModel cost;
  cost.linear_ns = 1;
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 3,
                   .links = {{.max_ranks = 64, .gb_per_s = 1}}},
                  {.kind = ContextKind::all_to_all,
                   .bytes_per_token = 1,
                   .divides = 8,
                   .links = {{.max_ranks = 64, .gb_per_s = 1}}}};
  const Topology topology{.ranks = 24, .capacity = 100};
  for (std::uint64_t seed = 0; seed < num_instances(100); ++seed) {
    Random random(seed);
    std::vector<Tokens> lengths = {700};
    for (std::int64_t i = random.between(4, 12); i > 0; --i) {
      lengths.push_back(random.between(50, 300));
    }
    const Problem problem(singles(lengths), topology, cost,
                          resolved({.context = "dynamic", .min_context_size = 3}, topology));
    const Nanoseconds bound = step_bound(problem);
    EXPECT_LE(bound, search_step(problem, bound, 10'000).time) << "seed " << seed;
  }
}

// Five ranks from the sixth on cross a border of eight, where the link is slower but answers
// sooner.
TEST(StepBound, KnowsThePlaceWhereALinkIsBest) {
  CostModel cost = dear_microbatches();
  cost.context.front().bytes_per_token = 10;
  cost.context.front().links = {{.max_ranks = 8, .gb_per_s = 10, .latency_us = 0.2},
                                {.max_ranks = 64, .gb_per_s = 1, .latency_us = 0.05}};
  const Topology topology{.ranks = 10, .capacity = 10};
  const Problem problem(singles({10}), topology, cost, resolved({.context = "static:5"}, topology));
  EXPECT_FALSE(problem.order().has_ordered_links);
  EXPECT_EQ(problem.least_fixed(5), 100 + 50);
  EXPECT_EQ(problem.least_cost(5, 0), problem.cost(problem.price_of({.first = 0, .size = 5}), 0));
  const RankRange behind{.first = 5, .size = 5};
  EXPECT_LE(step_bound(problem), problem.group_cost(behind, std::vector<ItemId>{0}));
}

// 35 tokens on two ranks take two micro-batches on each: that of the sequence which takes 605 by
// itself, and another one beside it.
TEST(StepBound, WithEqualCountsTheSlowestPaysForEveryMicrobatch) {
  const Topology topology{.ranks = 2, .capacity = 10};
  Work work = singles({5, 10, 10, 10});
  work.extra_costs = {500, 0, 0, 0};
  const Problem problem(work, topology, dear_microbatches(),
                        resolved({.context = "static:1", .counts = Counts::equal}, topology));
  EXPECT_EQ(step_bound(problem), 605);
  EXPECT_EQ(equal_step_bound(problem), 705);
}

TEST(StepBound, NoRuleSharesMoreThanAMicrobatch) {
  Random random(3);
  for (std::uint64_t trial = 0; trial < num_asked(3000); ++trial) {
    const Tokens capacity = random.between(1, 60);
    Tokens left = capacity;
    std::vector<Tokens> filling;
    while (left > 0) {
      filling.push_back(random.between(1, left));
      left -= filling.back();
    }
    for (const ShareRule& rule : share_rules()) {
      double sum = 0;
      for (const Tokens tokens : filling) sum += rule(tokens, capacity);
      EXPECT_LE(sum, 1 + 1e-12) << "capacity " << capacity << ", value " << rule.value;
    }
  }
}

TEST(StepBound, NoStepIsShorter) {
  for (std::uint64_t seed = 0; seed < num_asked(1300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const CostModel cost = random_cost(random);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(1, 16)),
                            .capacity = 4096};
    std::vector<Tokens> lengths;
    const std::int64_t count = random.between(1, 80);
    for (std::int64_t i = 0; i < count; ++i) {
      lengths.push_back(
          random_length(random, topology.capacity, topology.capacity * topology.ranks * 3 / 4));
    }
    for (const char* context : {"dynamic", "dynamic:any"}) {
      const Problem problem(singles(lengths), topology, cost,
                            resolved({.context = context}, topology));
      bool is_possible = true;
      for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
        is_possible = is_possible && problem.smallest_place(bundle) < problem.sizes().size();
      }
      if (!is_possible) continue;
      const Nanoseconds bound = step_bound(problem);
      EXPECT_GE(search_step(problem, bound, 50'000).time, bound) << context;
      const Nanoseconds equal_bound = equal_step_bound(problem);
      EXPECT_GE(step_time(problem, search_equal_step(problem, equal_bound, 20'000)), equal_bound)
          << context;
    }
  }
}

// Pairs on three ranks all have the middle one, which runs all sequences: 22 each, and two
// micro-batches of 20 tokens for 100.
TEST(LeftOverBound, SeesThatAllGroupsShareARank) {
  const Topology topology{.ranks = 3, .capacity = 10};
  PlanOptions options{.context = "dynamic:any", .min_context_size = 2, .max_context_size = 2};
  const std::vector<Tokens> lengths(10, 4);
  const Problem pairs(singles(lengths), topology, dear_microbatches(), resolved(options, topology));
  EXPECT_NEAR(static_cast<double>(left_over_bound(pairs)), 10 * 22 + 2 * 100, 1);
  EXPECT_NEAR(static_cast<double>(left_over_work(pairs)), 10 * 22, 1);
  EXPECT_GT(left_over_bound(pairs), step_bound(pairs));
  options.min_context_size = 1;
  const Problem any(singles(lengths), topology, dear_microbatches(), resolved(options, topology));
  EXPECT_EQ(left_over_bound(any), 0);  // ranks by themselves are none left over
}

}  // namespace
}  // namespace isochron
