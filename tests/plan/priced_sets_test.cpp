// Prices of many bundles beside all sets of a few, and steps of sets that are worth them.

#include "isochron/plan/bundles/priced_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/block_levels.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/rank_bound.h"
#include "isochron/plan/bundles/soft_prices.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// Groups of two ranks pay an eightieth more than lengths, and micro-batches cost a little.
Drawn plain_prompts(const std::vector<std::vector<Tokens>>& prompts, std::int32_t ranks) {
  Drawn drawn = plain_bundles(prompts);
  drawn.topology = {.ranks = ranks, .capacity = 1 << 20};
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  drawn.cost.microbatch_ns = 1500;
  drawn.cost.context = {{.kind = ContextKind::all_gather_kv,
                         .bytes_per_token = 1,
                         .links = {{.max_ranks = 64, .gb_per_s = 80, .latency_us = 0}}}};
  return drawn;
}

// About two prompts a rank, some of which no rank runs in time.
Drawn many_prompts(std::uint64_t seed, std::int32_t ranks) {
  Random random(seed);
  std::vector<std::vector<Tokens>> prompts(static_cast<std::size_t>(2 * ranks));
  for (auto& prompt : prompts) {
    for (int i = 0; i < 4; ++i) prompt.push_back(random.between(1000, 60'000));
    if (random.below(40) == 0) prompt.push_back(200'000);
  }
  return plain_prompts(prompts, ranks);
}

std::vector<BundleId> all_of(const BundleTable& table) {
  std::vector<BundleId> all(static_cast<std::size_t>(table.num_bundles()));
  std::iota(all.begin(), all.end(), BundleId{0});
  return all;
}

BlockUse together(const BundleTable& table, std::int32_t level, std::span<const BundleId> bundles) {
  BlockUse all;
  for (const BundleId bundle : bundles) {
    const BlockUse& use = table.use(level, bundle);
    all.cost += use.cost;
    all.tokens += use.tokens;
    all.sequences += use.sequences;
  }
  return all;
}

// Four times 60, for which 100 is the least that a rank runs with another: two of them beside 40.
TEST(SoftPrices, WhatLeavesHolesIsDearerThanItsCost) {
  const Drawn drawn = plain_prompts(
      {{30'000, 30'000}, {30'000, 30'000}, {30'000, 30'000}, {30'000, 30'000}, {20'000, 20'000}},
      4);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const SoftPrices found = find_soft_prices(table, 4, 70'000);
  ASSERT_EQ(found.prices.size(), 5);
  EXPECT_GE(found.time, 70'000);
  const auto time = static_cast<double>(found.time);
  EXPECT_GT(found.prices[0], 60'000 / time);
  EXPECT_NEAR(found.prices[0], found.prices[3], 1e-9);
  // No more than on a group of two.
  EXPECT_LT(found.prices[0], 1.02 * 60'000 / (time - 1500));
}

TEST(SoftPrices, NoBundlesHaveNoPrices) {
  const Drawn drawn = plain_prompts({}, 2);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  EXPECT_TRUE(find_soft_prices(BundleTable(problem), 2, 1000).prices.empty());
}

// By all pairs and triples of a rank, and by groups of two that are full.
TEST(SoftPrices, NoGroupIsWorthMuchMoreThanItself) {
  for (std::uint64_t seed = 0; seed < num_asked(10); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = many_prompts(seed, 64);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const BundleTable table(problem);
    const Nanoseconds low = step_bound(problem);
    const SoftPrices found = find_soft_prices(table, 64, low);
    EXPECT_GE(found.time, low);
    EXPECT_LE(found.time, low + low / 100);
    double sum = 0;
    double dearest = 0;
    const auto count = table.num_bundles();
    const auto price = [&](BundleId bundle) {
      return found.prices[static_cast<std::size_t>(bundle)];
    };
    for (BundleId a = 0; a < count; ++a) {
      EXPECT_GE(price(a), 0);
      const double share = 2 * static_cast<double>(table.use(1, a).cost) /
                           static_cast<double>(found.time - table.fixed(1));
      EXPECT_LE(price(a), share * 1.0001);
      sum += price(a);
      for (BundleId b = 0; b < a; ++b) {
        const std::vector<BundleId> pair = {a, b};
        if (table.time(0, together(table, 0, pair)) > found.time) continue;
        dearest = std::max(dearest, price(a) + price(b));
        for (BundleId c = 0; c < b; ++c) {
          const std::vector<BundleId> triple = {a, b, c};
          if (table.time(0, together(table, 0, triple)) > found.time) continue;
          dearest = std::max(dearest, price(a) + price(b) + price(c));
        }
      }
    }
    EXPECT_LT(dearest, 1.03);
    EXPECT_NEAR(sum / 64, 1, 0.003);
  }
}

// What a step of sets promises: every bundle once, no more groups than there are, all in time.
void expect_whole_step(const BundleTable& table, const TightQuestion& question,
                       std::vector<Nanoseconds> begun, const TightSets& step) {
  std::vector<int> num_seen(static_cast<std::size_t>(table.num_bundles()), 0);
  std::sort(begun.begin(), begun.end());
  ASSERT_GE(step.wide.size(), begun.size());
  const std::size_t num_free = step.wide.size() - begun.size();
  EXPECT_LE(step.narrow.size() + 2 * num_free, static_cast<std::size_t>(question.num_groups));
  for (const auto& [level, sets] : {std::pair(0, &step.narrow), std::pair(1, &step.wide)}) {
    for (std::size_t k = 0; k < sets->size(); ++k) {
      const TightSet& set = (*sets)[k];
      for (const BundleId bundle : set) ++num_seen[static_cast<std::size_t>(bundle)];
      if (set.empty()) continue;
      const Nanoseconds before = level == 1 && k >= num_free ? begun[k - num_free] : 0;
      EXPECT_LE(before + table.time(level, together(table, level, set)), step.time);
    }
  }
  for (const BundleId bundle : question.bundles) {
    EXPECT_EQ(num_seen[static_cast<std::size_t>(bundle)], 1);
  }
  EXPECT_EQ(std::accumulate(num_seen.begin(), num_seen.end(), 0),
            static_cast<int>(question.bundles.size()));
}

TEST(PricedSets, AStepHasAllBundlesInTime) {
  int num_found = 0;
  for (std::uint64_t seed = 0; seed < num_asked(20); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = many_prompts(seed, 64);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const BundleTable table(problem);
    const SoftPrices prices = find_soft_prices(table, 64, step_bound(problem));
    std::vector<BundleId> bundles = all_of(table);
    std::vector<Nanoseconds> before(32, 0);
    TightQuestion question{.level = 0, .bundles = bundles, .num_groups = 64};
    if (seed % 2 == 1) {
      // Two groups have begun, with about as much as two bundles take that are not asked for.
      before[3] = prices.time / 2;
      before[9] = prices.time / 3;
      bundles.resize(bundles.size() - 6);
      question = {.level = 0,
                  .bundles = bundles,
                  .num_groups = 60,
                  .num_other_groups = 4,
                  .taken = 2 * (before[3] + before[9])};
    }
    Random random(seed);
    const auto step = find_priced_sets(table, question, before, prices, 20'000, random);
    if (!step) continue;
    ++num_found;
    std::erase(before, 0);
    expect_whole_step(table, question, before, *step);
    EXPECT_LE(step->time, prices.time + prices.time / 50);
  }
  if (!is_sampled) {
    EXPECT_GT(num_found, 9);
  }
}

TEST(PricedSets, WithFewerGroupsAStepIsLonger) {
  const Drawn drawn = many_prompts(1, 64);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const SoftPrices prices = find_soft_prices(table, 64, step_bound(problem));
  const std::vector<BundleId> bundles = all_of(table);
  const TightQuestion question{.level = 0, .bundles = bundles, .num_groups = 60};
  Random random(1);
  const auto step = find_priced_sets(table, question, {}, prices, 20'000, random);
  ASSERT_TRUE(step);
  expect_whole_step(table, question, {}, *step);
  EXPECT_GT(60 * step->time, 64 * (prices.time - prices.time / 100));
}

TEST(PricedSets, WhatFitsNoGroupHasNoStep) {
  const Drawn drawn = plain_prompts({{50'000}, {60'000}, {900'000}}, 2);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const std::vector<BundleId> bundles = all_of(table);
  const SoftPrices prices{.prices = {0.5, 0.6, 0}, .time = 120'000};
  Random random(1);
  EXPECT_FALSE(find_priced_sets(table, {.level = 0, .bundles = bundles, .num_groups = 2}, {},
                                prices, 1000, random));
}

// From any prices, good or not: no bound is above the best of all steps.
TEST(RankBoundFromPrices, NoStepIsShorter) {
  int num_raised = 0;
  for_exact_steps(2000, [&](const Problem& problem, const ExactStep& exact) {
    const BundleTable table(problem);
    const Nanoseconds plain = step_bound(problem);
    const Nanoseconds high = exact.draft.time * 9 / 8;
    SoftPrices prices = find_soft_prices(table, problem.num_ranks(), plain);
    Random random(static_cast<std::uint64_t>(plain));
    for (int trial = 0; trial < 3; ++trial) {
      const Nanoseconds raised = rank_bound(table, problem.num_ranks(), plain, high, prices);
      EXPECT_GE(raised, plain);
      EXPECT_LE(raised, std::max(plain, exact.bound));
      num_raised += raised > plain ? 1 : 0;
      for (double& price : prices.prices) price *= 1 + 0.1 * random.unit();
      prices.time += prices.time / 20;
    }
  });
  RecordProperty("raised", num_raised);
  if (!is_sampled) {
    EXPECT_GT(num_raised, 100);
  }
}

// Pairs of 4 answers need two micro-batches where one holds 6 of them.
TEST(BlockLevels, MicrobatchesAreFilledByTokensAndSequences) {
  Drawn drawn = many_prompts(0, 64);
  const auto fills_one = [&] {
    drawn.options = resolved(drawn.options, drawn.topology);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    return fills_one_microbatch(BundleTable(problem), 64);
  };
  EXPECT_TRUE(fills_one());
  drawn.options.max_sequences = 6;
  EXPECT_FALSE(fills_one());
  drawn.options.max_sequences = 20;
  EXPECT_TRUE(fills_one());
  drawn.topology.capacity = 250'000;
  EXPECT_FALSE(fills_one());
}

TEST(BlockLevels, WideGroupsAreCheapWithLittleTraffic) {
  const Drawn drawn = many_prompts(0, 64);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  EXPECT_TRUE(is_cheap(table, 1, 1.06));
  EXPECT_FALSE(is_cheap(table, 1, 1.01));
  EXPECT_EQ(level_of_blocks(table, 64), 1);
}

TEST(BlockLevels, StepsAreShortForManyRanks) {
  const Drawn drawn = many_prompts(0, 64);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  EXPECT_TRUE(is_short_step(problem, 64 * 6'000'000 - 1));
  EXPECT_FALSE(is_short_step(problem, 64 * 6'000'000));
}

TEST(PricedSets, ManyBundlesThatNestArePriced) {
  const auto is_priced = [](Drawn drawn) {
    drawn.options = resolved(drawn.options, drawn.topology);
    return has_priced_bundles(Problem(drawn.work, drawn.topology, drawn.cost, drawn.options));
  };
  EXPECT_FALSE(is_priced(many_prompts(0, 64)));
  Drawn many = many_prompts(0, 128);
  EXPECT_TRUE(is_priced(many));
  many.options.context = "dynamic:any";
  EXPECT_FALSE(is_priced(many));
  EXPECT_FALSE(is_priced(many_prompts(0, 1024)));
}

// With more bundles than have their bound raised after the search: it comes with the step.
TEST(PricedSets, ManyBundlesComeNearTheirBound) {
  for (std::uint64_t seed = 0; seed < num_asked(3); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = many_prompts(seed, 128);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const Nanoseconds low = block_bound(problem, step_bound(problem));
    const auto found = search_partition(problem, low, 60'000);
    ASSERT_TRUE(found);
    EXPECT_GT(found->bound, low);
    EXPECT_LE(found->bound, found->time);
    EXPECT_LT(static_cast<double>(found->time), 1.01 * static_cast<double>(found->bound));
  }
}

}  // namespace
}  // namespace isochron
