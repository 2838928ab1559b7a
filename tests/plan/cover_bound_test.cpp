// What a block of ranks can hold: sets that are worth much, beside all of them, and the bound that
// rests on these.

#include "isochron/plan/bundles/cover_bound.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/cover_program.h"
#include "isochron/plan/bundles/dear_sets.h"
#include "isochron/plan/bundles/knapsack_cover.h"
#include "isochron/plan/bundles/wide_knapsack.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/plan/wide_contents.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// Two ranks, one a block: within 16 the first goes with the second, or with both of the others.
TEST(DearSets, ThePricesSayWhichSetsAreFound) {
  const Drawn drawn = plain_bundles({{10}, {6}, {3}, {3}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  DearSets dear(table, 0, 16);
  WideFill wide(table, 0, 16);
  const auto dearest = [&](std::vector<double> prices, Nanoseconds time, double limit,
                           std::int64_t work) {
    wide.set_prices(prices, -1, 0);
    return dear.find(prices, wide, time, limit, work);
  };
  const auto one = dearest({0.7, 0.4, 0.1, 0.1}, 16, 1.05, 1000);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->front().count, 2);
  EXPECT_EQ(one->front().time, 16);
  const auto two = dearest({0.7, 0.1, 0.2, 0.2}, 16, 1.05, 1000);
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 1);
  EXPECT_EQ(two->front().count, 3);
  // Too dear, too late, too much work.
  EXPECT_TRUE(dearest({0.7, 0.4, 0.1, 0.1}, 16, 1.15, 1000)->empty());
  EXPECT_TRUE(dearest({0.7, 0.4, 0.1, 0.1}, 15, 1.05, 1000)->empty());
  EXPECT_FALSE(dearest({0.7, 0.4, 0.1, 0.1}, 16, 1.05, 1));
}

TEST(DearSets, NoSetIsMissing) {
  int num_found = 0;
  int num_none = 0;
  for (std::uint64_t seed = 0; seed < num_asked(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const BundleTable table(problem);
    Random random(seed);
    const auto level =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(table.num_levels())));
    if (!has_halves(table, level)) continue;
    std::vector<double> prices;
    Nanoseconds latest = 0;
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      prices.push_back(random.below(6) == 0 ? 0 : random.unit());
      if (table.fits(level, bundle)) latest += table.time(level, bundle);
    }
    latest = std::max<Nanoseconds>(1, latest / random.between(1, 4));
    const Nanoseconds time = random.between(latest / 2, latest);
    WideFill wide(table, level, latest);
    wide.set_prices(prices, -1, 0);
    // All sets of bundles that have a price: others add nothing.
    BlockPacker packer(table, level);
    double dearest = 0;
    const std::size_t num_sets = std::size_t{1} << prices.size();
    const auto worth_of = [&](const BundleSet& set) {
      double worth = 0;
      for (const BundleId bundle : set.ids()) worth += prices[static_cast<std::size_t>(bundle)];
      const auto beside = wide.find_dearest(time - set.time, 0);
      return worth + (beside ? beside->worth : 0);
    };
    for (std::size_t members = 1; members < num_sets; ++members) {
      BundleSet set;
      for (std::size_t i = 0; i < prices.size(); ++i) {
        if ((members >> i & 1) != 0) set.bundles[set.count++] = static_cast<BundleId>(i);
      }
      const auto is_free = [&](BundleId b) { return prices[static_cast<std::size_t>(b)] == 0; };
      if (std::any_of(set.ids().begin(), set.ids().end(), is_free)) continue;
      set.time = packer.time(set.ids());
      if (set.time >= 0 && set.time <= time) dearest = std::max(dearest, worth_of(set));
    }
    DearSets dear(table, level, latest);
    for (const BundleSet& set : dear.first_sets()) {
      EXPECT_EQ(packer.time(set.ids()), set.time);
      EXPECT_LE(set.time, latest);
    }
    for (const double part : {0.7, 0.999, 1.001}) {
      std::int64_t work = 1'000'000;
      const double limit = std::max(1e-3, part * dearest);
      const auto found = dear.find(prices, wide, time, limit, work);
      ASSERT_TRUE(found);
      double most = 0;
      for (const BundleSet& set : *found) {
        EXPECT_EQ(packer.time(set.ids()), set.time);
        EXPECT_LE(set.time, time);
        EXPECT_GE(worth_of(set), limit * (1 - 1e-9));
        most = std::max(most, worth_of(set));
      }
      if (dearest >= limit) {
        EXPECT_NEAR(most, dearest, 1e-9);
      }
      (found->empty() ? num_none : num_found) += 1;
    }
  }
  if (!is_sampled) {
    EXPECT_GT(num_found, 1000);
    EXPECT_GT(num_none, 500);
  }
}

// Whether sets are listed or found, and beside the best of all steps.
TEST(CoverBound, NoStepIsShorterThanTheLeast) {
  int num_least = 0;
  int num_listed = 0;
  int num_apart = 0;  // by how far prices were found, in the last digits
  for_exact_steps(2000, [&](const Problem& problem, const ExactStep& exact) {
    const BundleTable table(problem);
    const std::int32_t ranks = problem.num_ranks();
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      if (!has_halves(table, level) || ranks % table.size(level) != 0) continue;
      EXPECT_FALSE(is_least_by_covers(table, ranks, level, exact.bound + 1, 1'000'000));
      EXPECT_FALSE(is_least_by_covers(table, ranks, level, exact.bound * 5 / 4 + 1, 1'000'000));
      const bool is_least = is_least_by_covers(table, ranks, level, exact.bound, 1'000'000);
      num_least += is_least ? 1 : 0;
      const auto sets = find_bundle_sets(table, level, exact.bound, 0, 10'000);
      if (!sets) continue;
      const Nanoseconds listed =
          cover_bound(table, ranks, level, *sets, 0, 1, exact.bound, exact.bound - 1);
      EXPECT_LE(listed, exact.bound);
      num_listed += listed == exact.bound ? 1 : 0;
      num_apart += is_least == (listed == exact.bound) ? 0 : 1;
    }
  });
  RecordProperty("least", num_least);
  RecordProperty("listed", num_listed);
  EXPECT_LE(num_apart * 500, num_least);
  if (!is_sampled) {
    EXPECT_GT(num_least, 500);
    EXPECT_GT(num_listed, 500);
  }
}

// More bundles than dynamic programming answers for: what is found is never shorter.
TEST(CoverBound, NoPartitionIsShorterThanTheLeast) {
  int num_least = 0;
  for (std::uint64_t seed = 0; seed < num_asked(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    constexpr std::int32_t ranks = 32;
    const Drawn drawn = random_prompts(seed, ranks, 18, 4);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const auto found = search_partition(problem, step_bound(problem), 3000);
    if (!found) continue;
    const BundleTable table(problem);
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      if (!has_halves(table, level)) continue;
      for (const Nanoseconds time : {found->time + 1, found->time * 101 / 100 + 1}) {
        EXPECT_FALSE(is_least_by_covers(table, ranks, level, time, 100'000));
      }
      num_least += is_least_by_covers(table, ranks, level, found->time, 100'000) ? 1 : 0;
    }
  }
  RecordProperty("least", num_least);
  if (!is_sampled) {
    EXPECT_GT(num_least, 0);
  }
}

// On both ranks the first bundle takes 30, the second 10, and half of each counts for a rank.
TEST(WideKnapsack, GroupsAreWhole) {
  Drawn drawn = plain_bundles({{60}, {20}});
  drawn.options.context = "dynamic";
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  WideKnapsack wide(table, 0, 90);
  wide.set_prices(std::vector<double>{1, 0.4});
  EXPECT_DOUBLE_EQ(wide.most_worth(9), 0);
  EXPECT_DOUBLE_EQ(wide.most_worth(10), 0.2);
  EXPECT_DOUBLE_EQ(wide.most_worth(29), 0.2);
  EXPECT_DOUBLE_EQ(wide.most_worth(30), 0.5);
  EXPECT_DOUBLE_EQ(wide.most_worth(39), 0.5);
  EXPECT_DOUBLE_EQ(wide.most_worth(90), 0.7);
  std::vector<CoverProgram::Part> content;
  wide.add_dearest(39, content);
  ASSERT_EQ(content.size(), 1);
  EXPECT_EQ(content[0].bundle, 0);
  EXPECT_DOUBLE_EQ(content[0].part, 0.5);
  EXPECT_DOUBLE_EQ(wide.most_of(0, 30), 0.5);
  EXPECT_DOUBLE_EQ(wide.most_of(0, 29), 0);
}

TEST(WideKnapsack, NoContentIsDearer) {
  int num_tight = 0;
  for_wide_contents(2000, [&](const BundleTable& table, const WideContents& all) {
    WideKnapsack wide(table, all.level, all.latest);
    wide.set_prices(all.prices);
    const double most = wide.most_worth(all.time);
    EXPECT_GE(most, all.dearest * (1 - 1e-9));
    num_tight += most <= all.dearest * (1 + 1e-9) ? 1 : 0;
    // What is said to be worth that is.
    std::vector<CoverProgram::Part> content;
    wide.add_dearest(all.time, content);
    double worth = 0;
    for (const auto& [bundle, part] : content) {
      worth += part * all.prices[static_cast<std::size_t>(bundle)];
    }
    EXPECT_NEAR(worth, most, 1e-9);
  });
  RecordProperty("tight", num_tight);
  if (!is_sampled) {
    EXPECT_GT(num_tight, 200);
  }
}

TEST(CoverBound, NoStepIsShorterThanTheBoundWithWholeGroups) {
  int num_raised = 0;
  int num_above = 0;
  for_exact_steps(2000, [&](const Problem& problem, const ExactStep& exact) {
    const BundleTable table(problem);
    const std::int32_t ranks = problem.num_ranks();
    for (std::int32_t level = 0; level + 1 < table.num_levels(); ++level) {
      if (!has_halves(table, level) || ranks % table.size(level) != 0) continue;
      const Nanoseconds high = exact.bound * 9 / 8;
      const auto sets = find_bundle_sets(table, level, high, 0, 10'000);
      if (!sets) continue;
      const Nanoseconds low = exact.bound / 2;
      const Nanoseconds bound = knapsack_cover_bound(table, ranks, level, *sets, low, high);
      EXPECT_GE(bound, low);
      EXPECT_LE(bound, exact.bound);
      num_raised += bound > low ? 1 : 0;
      const Nanoseconds listed = cover_bound(table, ranks, level, *sets, 0, low, high, 0);
      const Nanoseconds above = knapsack_cover_bound(table, ranks, level, *sets, listed, high);
      EXPECT_LE(above, exact.bound);
      num_above += above > listed ? 1 : 0;
    }
  });
  RecordProperty("raised", num_raised);
  RecordProperty("above", num_above);
  if (!is_sampled) {
    EXPECT_GT(num_raised, 1000);
    EXPECT_GT(num_above, 50);
  }
}

TEST(CoverProgram, PricesFollowWhatBlocksHold) {
  CoverProgram program;
  program.begin(std::vector<double>{1, 1, 0.5});
  EXPECT_DOUBLE_EQ(program.num_blocks(), 4);
  EXPECT_DOUBLE_EQ(program.prices()[2], 2);
  const std::vector<CoverProgram::Part> both = {{.bundle = 0, .part = 1}, {.bundle = 1, .part = 1}};
  ASSERT_TRUE(program.enter(both));
  EXPECT_DOUBLE_EQ(program.num_blocks(), 3);
  EXPECT_DOUBLE_EQ(program.prices()[0] + program.prices()[1], 1);
  EXPECT_FALSE(program.enter(both));
  ASSERT_TRUE(program.enter(std::vector<CoverProgram::Part>{{.bundle = 2, .part = 1}}));
  EXPECT_DOUBLE_EQ(program.num_blocks(), 2);
  EXPECT_DOUBLE_EQ(program.prices()[2], 1);
}

TEST(CoverProgram, WhatABlockJoinsHasThePriceOfOne) {
  CoverProgram program;
  program.begin(std::vector<double>{1, 1, 1});
  program.join(std::vector<BundleId>{0, 1, 2});
  EXPECT_DOUBLE_EQ(program.num_blocks(), 1);
  EXPECT_DOUBLE_EQ(program.prices()[0], -1);
  EXPECT_DOUBLE_EQ(program.prices()[1], 1);
  ASSERT_TRUE(program.enter_surplus(0));
  EXPECT_DOUBLE_EQ(program.num_blocks(), 1);
  double sum = 0;
  for (const double price : program.prices()) sum += price;
  EXPECT_DOUBLE_EQ(sum, 1);
  EXPECT_DOUBLE_EQ(program.prices()[0], 0);
}

}  // namespace
}  // namespace isochron
