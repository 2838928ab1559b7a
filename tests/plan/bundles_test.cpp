// Bundles of sequences that keep their ranks: their bound and their search, beside the best of all
// places, which dynamic programming finds for few bundles.

#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_bound.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/bundle_search.h"
#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/wide_fill.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/steps/step_search.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/plan/wide_contents.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

TEST(Bundles, NoStepIsShorterThanTheBoundOfBlocks) {
  int num_raised = 0;
  for (std::uint64_t seed = 0; seed < num_asked(3000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact);
    EXPECT_LE(exact->bound, exact->draft.time);
    const Nanoseconds plain = step_bound(problem);
    const Nanoseconds raised = block_bound(problem, plain);
    EXPECT_GE(raised, plain);
    EXPECT_LE(raised, exact->draft.time);
    num_raised += raised > plain ? 1 : 0;
  }
  if (!is_sampled) {
    EXPECT_GT(num_raised, 300);
  }
}

// 3 bundles that one rank each runs in 20, on 2 ranks: two of them share one, whatever the mean.
TEST(Bundles, TwoOfThreeShareARankOfTwo) {
  const Drawn drawn = plain_bundles({{10, 10}, {10, 10}, {10, 10}});
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  ASSERT_TRUE(has_nested_bundles(problem));
  EXPECT_EQ(step_bound(problem), 30);
  EXPECT_EQ(bundle_bound(problem, 30, 40), 40);
  EXPECT_EQ(bundle_bound(problem, 30, 60), 40);
}

TEST(Bundles, NoStepIsShorterThanTheBoundOfCovers) {
  int num_raised = 0;
  int num_reached = 0;
  for_exact_steps(3000, [&](const Problem& problem, const ExactStep& exact) {
    const Nanoseconds plain = block_bound(problem, step_bound(problem));
    for (const Nanoseconds high : {exact.draft.time, exact.draft.time * 5 / 4}) {
      // By itself it knows micro-batches by their tokens only, as the best places do.
      EXPECT_LE(bundle_bound(problem, 1, high), exact.bound);
      const Nanoseconds raised = bundle_bound(problem, plain, high);
      EXPECT_GE(raised, plain);
      EXPECT_LE(raised, std::max(plain, exact.bound));
      num_raised += raised > plain ? 1 : 0;
      num_reached += raised == exact.bound ? 1 : 0;
    }
  });
  RecordProperty("raised", num_raised);
  RecordProperty("reached", num_reached);
  if (!is_sampled) {
    EXPECT_GT(num_raised, 500);
    EXPECT_GT(num_reached, 500);
  }
}

// On both ranks the first bundle takes 30, the second 10, and half of each counts for a rank.
TEST(Bundles, TheLongestWideGroupIsWhole) {
  Drawn drawn = plain_bundles({{60}, {20}});
  drawn.options.context = "dynamic";
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const BundleTable table(problem);
  WideFill fill(table, 0, 40);
  fill.set_prices(std::vector<double>{1, 0.2}, -1, 0);
  const auto both = fill.find_dearest(40, 0);
  ASSERT_TRUE(both);
  EXPECT_DOUBLE_EQ(both->worth, 0.6);
  EXPECT_EQ(both->longest.bundle, 0);
  EXPECT_DOUBLE_EQ(both->longest.part, 0.5);
  EXPECT_EQ(both->rest.bundle, 1);
  EXPECT_DOUBLE_EQ(both->rest.part, 0.5);
  EXPECT_FALSE(fill.find_dearest(40, 0.6));
  EXPECT_DOUBLE_EQ(fill.most_worth(40), 40 * 0.5 / 30);
  // The second one has no room behind the first; the first none at all.
  EXPECT_DOUBLE_EQ(fill.find_dearest(39, 0)->worth, 0.5);
  EXPECT_DOUBLE_EQ(fill.find_dearest(29, 0)->worth, 0.29);
  EXPECT_DOUBLE_EQ(fill.time_for(0.5, 40), 30);
  EXPECT_DOUBLE_EQ(fill.time_for(0.55, 50), 40);
  EXPECT_DOUBLE_EQ(fill.time_for(0.55, 35), 35);
  EXPECT_DOUBLE_EQ(fill.most_of(0, 30), 0.5);
  EXPECT_DOUBLE_EQ(fill.most_of(0, 29), 0);
}

TEST(Bundles, NoContentOfWideGroupsIsDearer) {
  int num_tight = 0;
  for_wide_contents(2000, [&](const BundleTable& table, const WideContents& all) {
    WideFill fill(table, all.level, all.latest);
    fill.set_prices(all.prices, -1, 0);
    for (const auto& [worth, taken] : all.contents) {
      EXPECT_LE(fill.time_for(worth * (1 - 1e-9), static_cast<double>(all.latest)),
                static_cast<double>(taken));
    }
    const auto found = fill.find_dearest(all.time, 0);
    EXPECT_GE(found ? found->worth : 0, all.dearest * (1 - 1e-9));
    EXPECT_TRUE(!found || found->worth <= fill.most_worth(all.time) * (1 + 1e-9));
    num_tight += all.dearest > 0 && found->worth <= all.dearest * (1 + 1e-9) ? 1 : 0;
  });
  if (!is_sampled) {
    EXPECT_GT(num_tight, 50);
  }
}

// More of them than dynamic programming answers for.
Drawn many_bundles(std::uint64_t seed) {
  Random random(seed);
  Drawn drawn = random_bundles(seed);
  drawn.topology.ranks = std::int32_t{1} << random.between(1, 6);
  drawn.options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
  drawn.options = resolved(drawn.options, drawn.topology);
  const std::int64_t ranks = drawn.topology.ranks;
  const auto num_bundles =
      static_cast<std::int32_t>(random.between(std::max<std::int64_t>(2, ranks / 4), 2 * ranks));
  drawn.work = random_work(random, std::min(num_bundles, 60), 12, drawn.topology.capacity / 2);
  return drawn;
}

TEST(Bundles, NoPartitionBeatsTheBoundOfCovers) {
  int num_met = 0;
  int num_found = 0;
  int num_useful = 0;
  for (std::uint64_t seed = 0; seed < num_asked(400); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = many_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const Nanoseconds plain = step_bound(problem);
    const auto found = search_partition(problem, plain, 3000);
    if (!found) continue;
    ++num_found;
    // As if no step were known.
    const Nanoseconds raised = bundle_bound(problem, plain, found->time * 5 / 4);
    EXPECT_LE(raised, found->time);
    // What is of no use is not looked for; what is of use is found.
    const Nanoseconds useless = bundle_bound(problem, plain, found->time * 5 / 4, found->time);
    EXPECT_LE(useless, found->time);
    EXPECT_LE(useless, raised + raised / 1000);
    const Nanoseconds useful =
        bundle_bound(problem, plain, found->time * 5 / 4, plain + (raised - plain) / 2);
    EXPECT_LE(useful, found->time);
    num_useful += useful >= raised - raised / 1000 ? 1 : 0;
    num_met += raised == found->time ? 1 : 0;
  }
  RecordProperty("met", num_met);
  if (!is_sampled) {
    EXPECT_GT(num_found, 200);
    EXPECT_GT(num_met, 20);
    EXPECT_GT(num_useful, num_found * 9 / 10);
  }
}

TEST(Bundles, APackerFindsTheBestPlacesInABlock) {
  int num_packed = 0;
  for (std::uint64_t seed = 0; seed < num_asked(1000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.sizes().back() != problem.num_ranks()) continue;
    const BundleTable table(problem);
    const std::int32_t whole = table.num_levels() - 1;
    if (problem.num_bundles() > static_cast<std::int32_t>(BundleSet::max_count) ||
        !has_halves(table, whole)) {
      continue;
    }
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact);
    std::vector<BundleId> all;
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) all.push_back(bundle);
    BlockPacker packer(table, whole);
    // What takes too long is not looked for.
    EXPECT_EQ(packer.time(all, exact->bound - 1), -1);
    EXPECT_EQ(packer.time(all, exact->bound), exact->bound);
    EXPECT_EQ(packer.time(all, exact->bound * 2), exact->bound);
    EXPECT_EQ(packer.time(all), exact->bound);
    std::vector<RankRange> places;
    for (const BundlePlace& place : packer.places()) {
      const std::int32_t size = table.size(place.level);
      places.push_back({.first = std::int64_t{place.block} * size, .size = size});
    }
    // What items need beyond their tokens aside, the places are as good as that.
    const Draft draft = bundle_draft(problem, places);
    EXPECT_GE(draft.time, exact->bound);
    if (exact->draft.time == exact->bound) {
      EXPECT_LE(static_cast<double>(draft.time), 1.2 * static_cast<double>(exact->bound));
    }
    ++num_packed;
  }
  if (!is_sampled) {
    EXPECT_GT(num_packed, 300);
  }
}

TEST(Bundles, TheSearchFindsNearlyTheBestPlaces) {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed < num_asked(600); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact);
    const Draft start = search_step(problem, exact->bound, 1000);
    const Draft found = search_bundles(problem, start, exact->bound, 4000);
    EXPECT_LE(found.time, start.time);
    EXPECT_GE(found.time, exact->bound);
    sum += static_cast<double>(found.time) / static_cast<double>(exact->bound);
    ++count;
  }
  ASSERT_GT(count, 0);
  if (!is_sampled) {
    EXPECT_LE(sum / count, 1.01);
  }
  RecordProperty("mean", std::to_string(sum / count));
}

// 200 tokens on 4 ranks: on all of them each takes its part, which blocks of 2 do not have.
TEST(Bundles, BlocksAreAsWideAsGroupsAreCheap) {
  Drawn drawn = plain_bundles({{45, 45}, {25, 25}, {15, 15}, {15, 15}});
  drawn.topology.ranks = 4;
  drawn.options = {.context = "dynamic", .keep_groups = KeepGroups::rank};
  drawn.options = resolved(drawn.options, drawn.topology);
  const Problem free(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto wide = search_partition(free, 50, 1000);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->time, 50);
  // Traffic that takes as long as the work of a rank.
  drawn.cost.context = {{.kind = ContextKind::all_gather_kv,
                         .bytes_per_token = 1,
                         .links = {{.max_ranks = 2, .gb_per_s = 1000, .latency_us = 0},
                                   {.max_ranks = 4, .gb_per_s = 1, .latency_us = 0}}}};
  const Problem dear(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto narrow = search_partition(dear, 50, 1000);
  ASSERT_TRUE(narrow);
  for (const DraftGroup& group : narrow->groups) EXPECT_LE(group.ranks.size, 2);
}

// Nodes of 8 ranks with slow links between them. By 1040 the first prompt needs 64 ranks and leaves
// no more than 8 nodes to the others, which take 9200 of them; by 1053 it needs 32.
TEST(Bundles, ALaterStepHasNarrowerGroups) {
  std::vector<std::vector<Tokens>> prompts(37, {1020, 1020});
  prompts[0] = std::vector<Tokens>(6, 1600);
  Drawn drawn = plain_bundles(prompts);
  drawn.topology = {.ranks = 128, .capacity = 16'384};
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  drawn.cost.context = {{.kind = ContextKind::all_gather_kv,
                         .bytes_per_token = 81,
                         .links = {{.max_ranks = 8, .gb_per_s = 100'000, .latency_us = 0},
                                   {.max_ranks = 128, .gb_per_s = 1000, .latency_us = 0}}}};
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  ASSERT_TRUE(has_nested_bundles(problem));
  const auto found = search_partition(problem, 1030, 20'000);
  ASSERT_TRUE(found);
  EXPECT_LT(found->time, 1070);
}

TEST(Bundles, ThePartitionFindsNearlyTheBestPlaces) {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed < num_asked(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact);
    const auto found = search_partition(problem, exact->bound, 4000);
    if (!found) continue;
    EXPECT_GE(found->time, exact->bound);
    sum += static_cast<double>(found->time) / static_cast<double>(exact->bound);
    ++count;
  }
  RecordProperty("mean", std::to_string(sum / std::max(1, count)));
  if (!is_sampled) {
    ASSERT_GT(count, 100);
    EXPECT_LE(sum / count, 1.02);
  }
}

}  // namespace
}  // namespace isochron
