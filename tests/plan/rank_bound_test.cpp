// The bound by what single ranks run: its contents beside all there are, its prices by hand, and
// the bound beside the best of all places.

#include "isochron/plan/bundles/rank_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_bound.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/content_prices.h"
#include "isochron/plan/bundles/rank_contents.h"
#include "isochron/plan/exact.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

constexpr std::int32_t all_of_each = 1'000'000;
constexpr std::int64_t any_work = 1'000'000'000;

using Parts = std::set<std::pair<BundleId, std::int32_t>>;

Parts parts_of(const ContentList& contents, std::size_t i) {
  Parts parts;
  for (const ContentPart& part : contents.parts(i)) parts.emplace(part.bundle, part.size);
  return parts;
}

// Costs are lengths, and a group of 2 halves them.
TEST(RankContents, ARankRunsWhatFitsInItsTime) {
  Drawn drawn = plain_bundles({{60}, {40}, {30}});
  drawn.options.context = "dynamic";
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  RankContents contents(table);
  contents.set_prices(std::vector<std::int64_t>{60, 40, 30}, 99, 90);
  ContentList found;
  EXPECT_TRUE(contents.collect(90, all_of_each, any_work, found));
  std::set<Parts> sets;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_GE(found.worth(i), 90);
    sets.insert(parts_of(found, i));
  }
  EXPECT_EQ(found.size(), sets.size());
  // 60 and 40 take 100 together.
  EXPECT_FALSE(sets.contains(Parts{{0, 1}, {1, 1}}));
  EXPECT_TRUE(sets.contains(Parts{{0, 1}, {2, 1}}));
  EXPECT_TRUE(sets.contains(Parts{{0, 1}, {1, 2}, {2, 2}}));
  contents.set_prices(std::vector<std::int64_t>{60, 40, 30}, 100, 90);
  found = {};
  EXPECT_TRUE(contents.collect(100, all_of_each, any_work, found));
  sets.clear();
  for (std::size_t i = 0; i < found.size(); ++i) sets.insert(parts_of(found, i));
  EXPECT_TRUE(sets.contains(Parts{{0, 1}, {1, 1}}));
}

TEST(RankContents, SomeAreMissingWhereOnlyAFewOfEachAreAskedFor) {
  const Drawn drawn = plain_bundles({{50}, {50}, {50}, {50}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  RankContents contents(table);
  contents.set_prices(std::vector<std::int64_t>{1, 1, 1, 1}, 100, 2);
  ContentList found;
  EXPECT_TRUE(contents.collect(2, all_of_each, any_work, found));
  EXPECT_EQ(found.size(), 6);
  found = {};
  EXPECT_FALSE(contents.collect(2, 1, any_work, found));
  EXPECT_EQ(found.size(), 3);  // the first one beside each of the others
  found = {};
  EXPECT_FALSE(contents.collect(2, all_of_each, 1, found));
}

TEST(RankContents, WhatIsWorthFarMoreThanAskedForIsFound) {
  const Drawn drawn = plain_bundles({{50}, {50}, {1}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  RankContents contents(table);
  const std::int64_t much = std::int64_t{1} << 40;
  contents.set_prices(std::vector<std::int64_t>{much, much, 1}, 100, RankContents::max_asked);
  ContentList found;
  EXPECT_TRUE(contents.collect(RankContents::max_asked, all_of_each, any_work, found));
  std::int64_t dearest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) dearest = std::max(dearest, found.worth(i));
  EXPECT_EQ(dearest, 2 * much);
}

// Those with the same widest groups, as they are found together and by themselves.
void expect_all_beside_wide(RankContents& contents, const ContentList& found, std::int64_t least) {
  std::map<std::vector<std::pair<BundleId, std::int32_t>>, std::set<Parts>> by_widest;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<std::pair<BundleId, std::int32_t>> widest;
    for (const ContentPart& part : found.parts(i)) {
      if (part.size == found.parts(i)[0].size) widest.emplace_back(part.bundle, part.size);
    }
    by_widest[widest].insert(parts_of(found, i));
  }
  for (const auto& [widest, together] : by_widest) {
    if (widest[0].second == 1) continue;
    std::vector<ContentPart> wide;
    for (const auto& [bundle, size] : widest) wide.push_back({.bundle = bundle, .size = size});
    ContentList beside;
    ASSERT_TRUE(contents.collect_beside(wide, least, any_work, beside));
    std::set<Parts> by_themselves;
    for (std::size_t i = 0; i < beside.size(); ++i) by_themselves.insert(parts_of(beside, i));
    EXPECT_EQ(by_themselves, together);
    EXPECT_EQ(by_themselves.size(), beside.size());
  }
}

// Of all ways to run bundles on sizes, or to leave them out.
TEST(RankContents, NoContentIsMissing) {
  int num_contents = 0;
  for (std::uint64_t seed = 0; seed < num_asked(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.num_bundles() > 4) continue;
    const BundleTable table(problem);
    Random random(seed);
    std::vector<std::int64_t> prices;
    for (BundleId b = 0; b < table.num_bundles(); ++b) {
      // By what they take, so that the floor decides between many.
      prices.push_back(table.use(table.num_levels() - 1, b).cost * random.between(90, 110) /
                       (table.use(table.num_levels() - 1, 0).cost + 1) * 10'000);
    }
    const Nanoseconds time =
        table.time(table.num_levels() - 1, 0) * random.between(1, 6) + random.between(0, 100);
    const std::int64_t floor = random.between(1, 2'000'000);
    RankContents contents(table);
    contents.set_prices(prices, time, floor);
    ContentList found;
    ASSERT_TRUE(contents.collect(floor, all_of_each, any_work, found));
    std::set<Parts> sets;
    for (std::size_t i = 0; i < found.size(); ++i) {
      sets.insert(parts_of(found, i));
      EXPECT_EQ(parts_of(found, i).size(), found.parts(i).size());
    }
    expect_all_beside_wide(contents, found, floor);
    std::int64_t num_ways = 1;
    for (BundleId b = 0; b < table.num_bundles(); ++b) num_ways *= table.num_levels() + 1;
    for (std::int64_t way = 1; way < num_ways; ++way) {
      std::vector<BlockUse> uses(static_cast<std::size_t>(table.num_levels()));
      std::int64_t worth = 0;
      Parts parts;
      bool fits = true;
      std::int64_t digits = way;
      for (BundleId b = 0; b < table.num_bundles(); ++b, digits /= table.num_levels() + 1) {
        const auto level = static_cast<std::int32_t>(digits % (table.num_levels() + 1)) - 1;
        if (level < 0) continue;
        fits = fits && table.fits(level, b);
        const std::int64_t price = prices[static_cast<std::size_t>(b)];
        BlockUse& use = uses[static_cast<std::size_t>(level)];
        use.cost += table.use(level, b).cost;
        use.tokens += table.use(level, b).tokens;
        use.sequences += table.use(level, b).sequences;
        worth += (price + table.size(level) - 1) / table.size(level);
        if (price > 0) parts.emplace(b, table.size(level));
      }
      Nanoseconds taken = 0;
      for (std::int32_t level = 0; level < table.num_levels(); ++level) {
        taken += table.time(level, uses[static_cast<std::size_t>(level)]);
      }
      if (!fits || taken > time || worth < floor) continue;
      EXPECT_TRUE(sets.contains(parts));
      ++num_contents;
    }
  }
  if (!is_sampled) {
    EXPECT_GT(num_contents, 5000);
  }
}

// Two share a rank, the third has one: 2 ranks run all, so no prices are worth more in sum.
TEST(ContentPrices, PricesGoToWhereAllContentsAreWorthTheSame) {
  ContentPrices pool(3);
  pool.add(std::vector<ContentPart>{{.bundle = 0}, {.bundle = 1}}, 1);
  pool.add(std::vector<ContentPart>{{.bundle = 2}}, 1);
  std::vector<double> prices = {0.6, 0.5, 0.8};
  for (int i = 0; i < 20; ++i) prices = pool.improved(prices, 0.05, 50);
  const double dearest = std::max(prices[0] + prices[1], prices[2]);
  EXPECT_NEAR((prices[0] + prices[1] + prices[2]) / dearest, 2, 0.01);
}

// A content that may be worth more gets dearer, also if that is said later.
TEST(ContentPrices, AContentIsWorthItsLimit) {
  ContentPrices pool(2);
  pool.add(std::vector<ContentPart>{{.bundle = 0}}, 1);
  pool.add(std::vector<ContentPart>{{.bundle = 1}}, 1);
  pool.add(std::vector<ContentPart>{{.bundle = 1}}, 1.1);
  std::vector<double> prices = {1, 1};
  for (int i = 0; i < 20; ++i) {
    prices = pool.improved(prices, 0.02, 50);
    const double dearest = std::max(prices[0], prices[1] / 1.1);
    for (double& price : prices) price /= dearest;
  }
  EXPECT_NEAR(prices[0], 1, 0.01);
  EXPECT_NEAR(prices[1], 1.1, 0.01);
}

TEST(ContentPrices, NoPriceMovesFurtherThanItMay) {
  ContentPrices pool(3);
  pool.add(std::vector<ContentPart>{{.bundle = 0, .size = 2}, {.bundle = 1}}, 1);
  const std::vector<double> before = {1.2, 0.001, 0.4};
  const std::vector<double> after = pool.improved(before, 0.01, 200);
  for (std::size_t b = 0; b < before.size(); ++b) {
    EXPECT_GE(after[b], 0);
    EXPECT_NEAR(after[b], before[b], 0.01 + 1e-6);
  }
  EXPECT_GT(after[2], before[2]);  // nothing keeps it down
}

// Far above 1 at first: it need not fall in many small steps, but the other rises in small ones.
TEST(ContentPrices, WhatIsWorthTooMuchFallsAtOnce) {
  ContentPrices pool(3);
  pool.add(std::vector<ContentPart>{{.bundle = 0}, {.bundle = 1}}, 1);
  pool.add(std::vector<ContentPart>{{.bundle = 2}}, 1);
  const std::vector<double> before = {0.54, 0.5, 0.99};
  const std::vector<double> after = pool.improved(before, 0.001, 50);
  EXPECT_LT(after[0] + after[1], 1.01);
  EXPECT_GE(after[0], before[0] - 0.03 - 1e-6);
  EXPECT_GE(after[1], before[1] - 0.03 - 1e-6);
  EXPECT_NEAR(after[2], before[2], 0.001 + 1e-6);
}

// 3 bundles that a rank runs in 20 each: 2 ranks take 40, whatever the mean.
TEST(RankBound, TwoOfThreeShareARankOfTwo) {
  const Drawn drawn = plain_bundles({{10, 10}, {10, 10}, {10, 10}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  EXPECT_EQ(rank_bound(table, 2, 30, 40), 40);
  EXPECT_EQ(rank_bound(table, 2, 30, 30), 30);
  EXPECT_LE(rank_bound(table, 2, 30, 80), 40);
  EXPECT_GT(rank_bound(table, 2, 30, 80), 36);
}

TEST(RankBound, NoStepIsShorter) {
  int num_raised = 0;
  int num_reached = 0;
  for_exact_steps(3000, [&](const Problem& problem, const ExactStep& exact) {
    const BundleTable table(problem);
    const Nanoseconds plain = step_bound(problem);
    for (const Nanoseconds high : {exact.draft.time, exact.draft.time * 5 / 4}) {
      const Nanoseconds raised = rank_bound(table, problem.num_ranks(), plain, high);
      EXPECT_GE(raised, plain);
      // By itself it knows micro-batches by their tokens only, as the best places do.
      EXPECT_LE(raised, std::max(plain, exact.bound));
      num_raised += raised > plain ? 1 : 0;
      num_reached += raised >= exact.bound - exact.bound / 1000 ? 1 : 0;
    }
  });
  RecordProperty("raised", num_raised);
  RecordProperty("reached", num_reached);
  if (!is_sampled) {
    EXPECT_GT(num_raised, 500);
    EXPECT_GT(num_reached, 500);
  }
}

// Prompts of several answers, two or three on a rank: more than dynamic programming answers for.
Drawn many_prompts(std::uint64_t seed) {
  Random random(seed);
  Drawn drawn = random_bundles(seed);
  drawn.topology.ranks = std::int32_t{1} << random.between(2, 6);
  drawn.topology.capacity = 16'384;
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  const auto num_bundles =
      static_cast<std::int32_t>(drawn.topology.ranks * random.between(4, 10) / 4);
  drawn.work = random_work(random, num_bundles, 8, random.between(200, 1500));
  return drawn;
}

TEST(RankBound, NoPartitionBeatsTheBound) {
  int num_raised = 0;
  int num_near = 0;
  int num_found = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = many_prompts(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const Nanoseconds plain = block_bound(problem, step_bound(problem));
    const auto found = search_partition(problem, plain, 20'000);
    if (!found) continue;
    ++num_found;
    const BundleTable table(problem);
    // As if only a worse step were known.
    const Nanoseconds raised =
        rank_bound(table, problem.num_ranks(), plain, found->time + found->time / 100);
    EXPECT_LE(raised, found->time);
    num_raised += raised > plain ? 1 : 0;
    const Nanoseconds all = bundle_bound(problem, plain, found->time);
    num_near += all >= found->time - found->time / 200 ? 1 : 0;
  }
  RecordProperty("found", num_found);
  RecordProperty("raised", num_raised);
  RecordProperty("near", num_near);
  if (!is_sampled) {
    EXPECT_GT(num_found, 100);
    EXPECT_GT(num_raised, 50);
    EXPECT_GT(num_near, 50);
  }
}

}  // namespace
}  // namespace isochron
