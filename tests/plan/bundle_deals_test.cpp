// Ways to deal bundles out to groups and blocks of ranks: what each promises holds, and small ones
// by hand.

#include <gtest/gtest.h>

#include <algorithm>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/even_blocks.h"
#include "isochron/plan/bundles/filled_steps.h"
#include "isochron/plan/bundles/full_blocks.h"
#include "isochron/plan/bundles/set_cover.h"
#include "isochron/plan/bundles/tight_sets.h"
#include "isochron/plan/bundles/wide_places.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// Lengths are costs, and groups of 2 pay a tenth more: pairs of 100 fill all 4 ranks.
TEST(BundleDeals, TightSetsFillRanksThatTrafficSpares) {
  Drawn drawn = plain_bundles({{60}, {40}, {70}, {15, 15}, {80}, {20}, {55}, {45}});
  drawn.topology.ranks = 4;
  drawn.options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
  drawn.options = resolved(drawn.options, drawn.topology);
  drawn.cost.context = {{.kind = ContextKind::all_gather_kv,
                         .bytes_per_token = 1,
                         .links = {{.max_ranks = 4, .gb_per_s = 10, .latency_us = 0}}}};
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const std::vector<BundleId> all = {0, 1, 2, 3, 4, 5, 6, 7};
  Random random(1);
  const auto choices =
      find_tight_sets(table, {.level = 0, .bundles = all, .num_groups = 4}, 103, 4000, random);
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices.front().time, 100);
  EXPECT_EQ(choices.front().narrow.size(), 4);
  EXPECT_TRUE(choices.front().wide.empty());
}

TEST(BundleDeals, TightSetsAreDisjointAndInTime) {
  int num_sets = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_prompts(seed, 8, 16, 4);
    Random random(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.sizes().size() < 2) continue;
    const BundleTable table(problem);
    std::vector<BundleId> asked;
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      if (table.fits(1, bundle)) asked.push_back(bundle);
    }
    const TightQuestion question{
        .level = 0, .bundles = asked, .num_groups = 6, .num_other_groups = 2, .taken = 1000};
    for (const TightSets& choice :
         find_tight_sets(table, question, step_bound(problem), 2000, random)) {
      std::vector<bool> is_seen(static_cast<std::size_t>(table.num_bundles()), false);
      EXPECT_LE(choice.narrow.size() + 2 * choice.wide.size(), 6);
      for (const auto& [level, sets] : {std::pair(0, &choice.narrow), std::pair(1, &choice.wide)}) {
        for (const TightSet& set : *sets) {
          BlockUse all;
          for (const BundleId bundle : set) {
            EXPECT_FALSE(is_seen[static_cast<std::size_t>(bundle)]);
            is_seen[static_cast<std::size_t>(bundle)] = true;
            EXPECT_TRUE(table.fits(level, bundle));
            all.cost += table.use(level, bundle).cost;
            all.tokens += table.use(level, bundle).tokens;
            all.sequences += table.use(level, bundle).sequences;
          }
          EXPECT_LE(table.time(level, all), choice.time);
          ++num_sets;
        }
      }
    }
  }
  if (!is_sampled) {
    EXPECT_GT(num_sets, 1000);
  }
}

// Groups of 2 pay a tenth more, and three of these bundles fill no rank: one pair of ranks is left
// for them.
TEST(BundleDeals, ACoverMixesRanksAndPairsOfThem) {
  Drawn drawn = plain_bundles({{60}, {40}, {72}, {28}, {60}, {60}, {62}});
  drawn.topology.ranks = 4;
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  drawn.cost.context = {{.kind = ContextKind::all_gather_kv,
                         .bytes_per_token = 1,
                         .links = {{.max_ranks = 4, .gb_per_s = 10, .latency_us = 0}}}};
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const std::vector<BundleId> all = {0, 1, 2, 3, 4, 5, 6};
  const TightQuestion question{.level = 0, .bundles = all, .num_groups = 4};
  const auto cover = find_cover(table, question, 90, 101, 1000);
  ASSERT_TRUE(cover);
  EXPECT_EQ(cover->time, 100);
  EXPECT_EQ(cover->narrow.size(), 2);
  ASSERT_EQ(cover->wide.size(), 1);
  EXPECT_EQ(cover->wide.front().size(), 3);
  // Nothing is shorter, nothing is looked at, and three ranks hold less.
  EXPECT_FALSE(find_cover(table, question, 90, 100, 1000));
  EXPECT_FALSE(find_cover(table, question, 90, 101, 0));
  EXPECT_FALSE(find_cover(table, {.level = 0, .bundles = all, .num_groups = 3}, 90, 101, 1000));
}

TEST(BundleDeals, ACoverHasEveryBundleOnceAndInTime) {
  int num_covers = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Drawn drawn = random_bundles(seed);
    Random random(seed);
    drawn.topology.ranks = 8;
    drawn.options =
        resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
    drawn.work = random_work(random, 20, 4, drawn.topology.capacity / 2);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.sizes().size() < 2) continue;
    const BundleTable table(problem);
    std::vector<BundleId> all;
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) all.push_back(bundle);
    if (!std::all_of(all.begin(), all.end(), [&](BundleId b) { return table.fits(1, b); }))
      continue;
    const Nanoseconds bound = step_bound(problem);
    const Nanoseconds high = bound + bound / 50;
    const auto cover =
        find_cover(table, {.level = 0, .bundles = all, .num_groups = 8}, bound, high, 100'000);
    if (!cover) continue;
    ++num_covers;
    EXPECT_LE(cover->narrow.size() + 2 * cover->wide.size(), 8);
    std::vector<int> times_seen(all.size(), 0);
    Nanoseconds latest = 0;
    for (const auto& [level, sets] : {std::pair(0, &cover->narrow), std::pair(1, &cover->wide)}) {
      for (const TightSet& set : *sets) {
        BlockUse use;
        for (const BundleId bundle : set) {
          ++times_seen[static_cast<std::size_t>(bundle)];
          use.cost += table.use(level, bundle).cost;
          use.tokens += table.use(level, bundle).tokens;
          use.sequences += table.use(level, bundle).sequences;
        }
        latest = std::max(latest, table.time(level, use));
      }
    }
    EXPECT_EQ(times_seen, std::vector<int>(all.size(), 1));
    EXPECT_EQ(latest, cover->time);
    EXPECT_GE(latest, bound);
    EXPECT_LT(latest, high);
  }
  if (!is_sampled) {
    EXPECT_GT(num_covers, 20);
  }
}

// The largest first, each where least is, would end at 17.
TEST(BundleDeals, ABlockIsFilledBeforeTheNextOne) {
  const Drawn drawn = plain_bundles({{8}, {7}, {6}, {5}, {4}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  BlockPacker packer(table, 0);
  const std::vector<BundleId> all = {0, 1, 2, 3, 4};
  const auto blocks_within = [&](Nanoseconds time, std::vector<Nanoseconds> taken,
                                 std::int64_t work) {
    return full_blocks(table, 0, packer, taken, all, time, work);
  };
  const auto blocks = blocks_within(15, {0, 0}, 10'000);
  ASSERT_TRUE(blocks);
  EXPECT_EQ((*blocks)[0].time, 15);
  EXPECT_EQ((*blocks)[1].time, 15);
  EXPECT_FALSE(blocks_within(14, {0, 0}, 10'000));
  EXPECT_FALSE(blocks_within(15, {0, 0}, 10));
  // What is done before counts, and the fuller block is filled first.
  const auto beside = blocks_within(17, {0, 4}, 10'000);
  ASSERT_TRUE(beside);
  EXPECT_EQ((*beside)[0].time, 17);
  EXPECT_EQ((*beside)[1].time, 17);
  EXPECT_EQ((*beside)[1].bundles[0], 0);
}

// Beside the largest, two bundles leave as much as the one that is worth more.
TEST(BundleDeals, WeightsSayWhatFillsABlock) {
  const Drawn drawn = plain_bundles({{10}, {6}, {3}, {3}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  BlockPacker packer(table, 0);
  const std::vector<BundleId> all = {0, 1, 2, 3};
  const std::vector<Nanoseconds> taken = {0, 0};
  const auto beside_largest = [&](std::vector<double>& weights) {
    std::int64_t work = 10'000;
    const auto blocks = full_blocks(table, 0, packer, taken, all, 16, work, weights);
    EXPECT_TRUE(blocks);
    return (*blocks)[0].count - 1;
  };
  std::vector<double> weights = {1, 1, 1.1, 1.1};
  EXPECT_EQ(beside_largest(weights), 2);
  // That block is full, the other one has 10 left of 16.
  EXPECT_DOUBLE_EQ(weights[0], 1);
  EXPECT_DOUBLE_EQ(weights[1], 0.75 + 0.25 * 16 / 6);
  EXPECT_DOUBLE_EQ(weights[2], 0.75 * 1.1 + 0.25);
  EXPECT_EQ(beside_largest(weights), 1);
}

// Bundles that are dealt out to blocks somehow, to be dealt out better.
BlockStep dealt_step(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
                     BlockPacker& packer, const WidePlaces& wide) {
  BlockStep step{.wide = wide, .blocks = {}, .time = 0};
  step.blocks.resize(static_cast<std::size_t>(num_ranks / table.size(level)));
  std::size_t next = 0;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    if (wide.has(bundle)) continue;
    BundleSet& block = step.blocks[next++ % step.blocks.size()];
    block.bundles[block.count++] = bundle;
  }
  for (std::size_t k = 0; k < step.blocks.size(); ++k) {
    BundleSet& block = step.blocks[k];
    block.time = wide.before[k] + (block.count > 0 ? packer.time(block.ids()) : 0);
    step.time = std::max(step.time, block.time);
  }
  return step;
}

// One of three bundles that a rank runs in 30 stands on both ranks and takes 15 of each.
TEST(BundleDeals, AWideGroupLeavesRoomInTwoBlocks) {
  Drawn drawn = plain_bundles({{30}, {30}, {30}});
  drawn.options.context = "dynamic";
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  BlockPacker packer(table, 0);
  BlockStep step = dealt_step(table, 2, 0, packer, *find_wide_places(table, 2, 0, 60));
  EXPECT_EQ(step.time, 60);
  FilledSteps filled(table, 2, 0, packer, 40);
  std::int64_t work = 10'000;
  filled.refill(step, work);
  EXPECT_EQ(step.time, 60);
  BlockStep unchanged = step;
  std::int64_t none = 0;
  filled.widen(unchanged, none);
  EXPECT_EQ(unchanged.time, 60);
  filled.widen(step, work);
  EXPECT_EQ(step.time, 45);
  EXPECT_TRUE(step.wide.has(0));
  EXPECT_FALSE(step.wide.has(1));
  EXPECT_EQ(step.wide.before, std::vector<Nanoseconds>(2, 15));
}

TEST(BundleDeals, FilledStepsHaveEveryBundleOnceAndInTime) {
  int num_refilled = 0;
  int num_widened = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    constexpr std::int32_t ranks = 16;
    const Drawn drawn = random_prompts(seed, ranks, 12, 6);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.sizes().size() < 3) continue;
    const BundleTable table(problem);
    if (!has_halves(table, 2)) continue;
    const Nanoseconds bound = step_bound(problem);
    const auto wide = find_wide_places(table, ranks, 2, bound + bound / 50);
    if (!wide) continue;
    BlockPacker packer(table, 2);
    BlockStep step = dealt_step(table, ranks, 2, packer, *wide);
    FilledSteps filled(table, ranks, 2, packer, bound);
    const auto check = [&] {
      std::vector<RankRange> places = step.wide.ranks;
      Nanoseconds latest = 0;
      for (std::size_t k = 0; k < step.blocks.size(); ++k) {
        const BundleSet& block = step.blocks[k];
        const Nanoseconds own = block.count > 0 ? packer.time(block.ids()) : 0;
        EXPECT_EQ(block.time, step.wide.before[k] + own);
        latest = std::max(latest, block.time);
        for (const BundleId bundle : block.ids()) {
          RankRange& place = places[static_cast<std::size_t>(bundle)];
          EXPECT_EQ(place.size, 0);
          place = {.first = static_cast<std::int64_t>(4 * k), .size = 4};
        }
      }
      for (const RankRange& place : places) EXPECT_GT(place.size, 0);
      EXPECT_EQ(step.time, latest);
      EXPECT_GE(step.time, bound);
    };
    std::int64_t work = 300'000;
    const Nanoseconds dealt = step.time;
    filled.refill(step, work);
    check();
    EXPECT_LE(step.time, dealt);
    num_refilled += step.time < dealt ? 1 : 0;
    const Nanoseconds refilled = step.time;
    filled.widen(step, work);
    check();
    EXPECT_LE(step.time, refilled);
    num_widened += step.time < refilled ? 1 : 0;
  }
  RecordProperty("refilled", num_refilled);
  RecordProperty("widened", num_widened);
  if (!is_sampled) {
    EXPECT_GT(num_refilled, 50);
    EXPECT_GT(num_widened, 5);
  }
}

TEST(BundleDeals, FullBlocksHaveEveryBundleOnceAndInTime) {
  int num_full = 0;
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_prompts(seed, 16, 12, 6);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.sizes().size() < 3) continue;
    const BundleTable table(problem);
    if (!has_halves(table, 2)) continue;
    std::vector<BundleId> all;
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) all.push_back(bundle);
    const Nanoseconds bound = step_bound(problem);
    const std::vector<Nanoseconds> taken = {bound / 10, 0, 0, bound / 2};
    BlockPacker packer(table, 2);
    std::int64_t work = 100'000;
    const Nanoseconds time = bound + bound / 2;
    const auto blocks = full_blocks(table, 2, packer, taken, all, time, work);
    if (!blocks) continue;
    ++num_full;
    std::vector<int> times_seen(all.size(), 0);
    for (std::size_t k = 0; k < blocks->size(); ++k) {
      const BundleSet& block = (*blocks)[k];
      for (const BundleId bundle : block.ids()) ++times_seen[static_cast<std::size_t>(bundle)];
      EXPECT_LE(block.time, time);
      EXPECT_EQ(block.time, taken[k] + (block.count > 0 ? packer.time(block.ids()) : 0));
    }
    EXPECT_EQ(times_seen, std::vector<int>(all.size(), 1));
  }
  if (!is_sampled) {
    EXPECT_GT(num_full, 50);
  }
}

// The largest first would end at 17.
TEST(BundleDeals, TwoBlocksShareFiveBundlesEvenly) {
  const Drawn drawn = plain_bundles({{8}, {7}, {6}, {5}, {4}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const std::vector<BundleId> all = {0, 1, 2, 3, 4};
  const auto latest = [&](const std::vector<Nanoseconds>& taken) {
    Random random(1);
    const auto blocks =
        even_blocks(table, 0, std::vector<BundleSet>(2), taken, all, 0, 1000, random);
    EXPECT_TRUE(blocks);
    return std::max(blocks->front().time, blocks->back().time);
  };
  EXPECT_EQ(latest({0, 0}), 15);
  EXPECT_EQ(latest({3, 0}), 17);
  EXPECT_EQ(latest({0, 28}), 30);
}

TEST(BundleDeals, ThreeBlocksShareAsEvenlyAsAllWaysToDeal) {
  for (std::uint64_t seed = 0; seed < num_asked(300); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<std::vector<Tokens>> lengths(5 + random.below(4));
    for (auto& bundle : lengths) bundle = {20 + static_cast<Tokens>(random.below(40))};
    const Drawn drawn = plain_bundles(lengths);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const BundleTable table(problem);
    std::vector<Nanoseconds> taken(3, 0);
    if (seed % 2 == 1) taken = {0, 5, static_cast<Nanoseconds>(random.below(20))};
    std::vector<BundleId> all;
    std::size_t num_deals = 1;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      all.push_back(static_cast<BundleId>(i));
      num_deals *= 3;
    }
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (std::size_t deal = 0; deal < num_deals; ++deal) {
      std::vector<Nanoseconds> times = taken;
      std::size_t digits = deal;
      for (const BundleId bundle : all) {
        times[digits % 3] += table.time(0, bundle);
        digits /= 3;
      }
      least = std::min(least, *std::max_element(times.begin(), times.end()));
    }
    const auto even =
        even_blocks(table, 0, std::vector<BundleSet>(3), taken, all, 0, 20'000, random);
    ASSERT_TRUE(even);
    std::vector<int> times_seen(all.size(), 0);
    Nanoseconds latest = 0;
    for (std::size_t k = 0; k < even->size(); ++k) {
      Nanoseconds time = taken[k];
      for (const BundleId bundle : (*even)[k].ids()) {
        time += table.time(0, bundle);
        ++times_seen[static_cast<std::size_t>(bundle)];
      }
      EXPECT_EQ((*even)[k].time, time);
      latest = std::max(latest, time);
    }
    EXPECT_EQ(times_seen, std::vector<int>(all.size(), 1));
    EXPECT_EQ(latest, least);
  }
}

TEST(BundleDeals, WhatABlockHasStaysWithTheBlocks) {
  const Drawn drawn = plain_bundles({{8}, {7}, {6}, {5}, {4}, {3}, {2}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  std::vector<BundleSet> blocks(2);
  blocks[1].bundles = {0, 1, 2};
  blocks[1].count = 3;
  const std::vector<Nanoseconds> taken = {0, 0};
  const std::vector<BundleId> rest = {3, 4, 5, 6};
  Random random(1);
  const auto even = even_blocks(table, 0, blocks, taken, rest, 0, 1000, random);
  ASSERT_TRUE(even);
  std::vector<BundleId> all;
  for (const BundleSet& block : *even) {
    all.insert(all.end(), block.ids().begin(), block.ids().end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<BundleId>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(std::max(even->front().time, even->back().time), 18);
  // One block holds six.
  EXPECT_FALSE(even_blocks(table, 0, std::vector<BundleSet>(1), std::vector<Nanoseconds>{0}, all, 0,
                           1000, random));
}

// Sequences of 40 on 4 ranks, side by side or one after the other.
TEST(BundleDeals, WhatIsSlowStandsOnTheSmallestGroupThatIsInTime) {
  Drawn drawn = plain_bundles({{80}, {40}, {40}, {20}});
  drawn.topology.ranks = 4;
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  const auto places = find_wide_places(table, 4, 0, 30);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->ranks[0], (RankRange{.first = 0, .size = 4}));
  EXPECT_EQ(places->ranks[1], (RankRange{.first = 0, .size = 2}));
  EXPECT_EQ(places->ranks[2], (RankRange{.first = 2, .size = 2}));
  EXPECT_FALSE(places->has(3));
  EXPECT_EQ(places->before, std::vector<Nanoseconds>(4, 40));
  // On 1 and 2 ranks.
  EXPECT_EQ(narrower_limits(table, 0, *places), (std::vector<Nanoseconds>{40, 80}));
  EXPECT_FALSE(find_wide_places(table, 4, 0, 19));
  // The last one too, to more ranks than a block has.
  const std::vector<BundleId> widened = {3};
  const auto wider = find_wide_places(table, 4, 0, 30, widened);
  ASSERT_TRUE(wider);
  EXPECT_EQ(wider->ranks[1], (RankRange{.first = 0, .size = 2}));
  EXPECT_EQ(wider->ranks[3], (RankRange{.first = 0, .size = 2}));
  EXPECT_EQ(wider->before, (std::vector<Nanoseconds>{50, 50, 40, 40}));
}

}  // namespace
}  // namespace isochron
