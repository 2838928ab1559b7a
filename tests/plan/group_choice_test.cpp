// Few bundles on groups of any size: what they take at least, and side by side.

#include <gtest/gtest.h>

#include <map>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/group_choice_bound.h"
#include "isochron/plan/bundles/side_by_side.h"
#include "isochron/plan/draft_slots.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

Drawn any_size(Drawn drawn, std::int32_t ranks) {
  drawn.topology.ranks = ranks;
  drawn.options =
      resolved({.context = "dynamic:any", .keep_groups = KeepGroups::rank}, drawn.topology);
  return drawn;
}

// What two ranks exchange for a token takes 0.4 ns, within blocks of so many.
Drawn with_traffic(Drawn drawn, std::int64_t block) {
  drawn.cost.context = {
      {.kind = ContextKind::all_gather_kv,
       .bytes_per_token = 0.8,
       .links = {{.max_ranks = block, .gb_per_s = 1}, {.max_ranks = 1024, .gb_per_s = 0.01}}}};
  return drawn;
}

TEST(GroupChoiceBound, ARankHasNoRoomForMore) {
  const Drawn drawn = any_size(with_traffic(plain_bundles({{10}, {10}, {10}}), 8), 2);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  ASSERT_EQ(problem.least_cost(1, 0), 10);
  ASSERT_EQ(problem.least_cost(2, 0), 9);
  // One on both ranks, then one on each. Their areas fill 15.
  EXPECT_EQ(group_choice_bound(problem, 15, 30), 19);
  EXPECT_EQ(group_choice_bound(problem, 15, 19), 19);
}

TEST(GroupChoiceBound, BundlesShareWhatTheyCan) {
  // Without traffic all of them run on all ranks.
  const Drawn drawn = any_size(plain_bundles({{12}, {12}, {12}}), 4);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  EXPECT_EQ(group_choice_bound(problem, 9, 12), 9);
}

TEST(GroupChoiceBound, Edges) {
  const Drawn drawn = any_size(plain_bundles({{7}}), 1);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  EXPECT_EQ(group_choice_bound(problem, 7, 7), 7);
  EXPECT_EQ(group_choice_bound(problem, 9, 7), 9);
  EXPECT_EQ(group_choice_bound(problem, 1, 7), 7);
}

TEST(SideBySide, AsManyRanksAsEachNeeds) {
  const Drawn drawn = any_size(plain_bundles({{30}, {10}}), 4);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto found = find_side_by_side(problem, 15);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, 10);
  ASSERT_EQ(found->groups.size(), 2);
  EXPECT_EQ(found->groups[0].ranks.size + found->groups[1].ranks.size, 4);
  EXPECT_FALSE(find_side_by_side(problem, 10));
}

TEST(SideBySide, SomeShareAGroup) {
  const Drawn drawn = any_size(with_traffic(plain_bundles({{10}, {20}, {10}}), 1), 2);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto found = find_side_by_side(problem, 100);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, 20);
}

TEST(SideBySide, StaysWithinBlocks) {
  // Three ranks for each would take 21, but one group would cross the blocks of four.
  const Drawn drawn = any_size(with_traffic(plain_bundles({{24}, {24}}), 4), 6);
  const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
  const auto found = find_side_by_side(problem, 1000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, 22);
  for (const DraftGroup& group : found->groups) {
    const std::int64_t last = group.ranks.first + group.ranks.size - 1;
    EXPECT_EQ(group.ranks.first / 4, last / 4);
  }
}

TEST(SideBySide, EveryBundleKeepsRanksOfItsOwn) {
  int num_found = 0;
  int num_faster = 0;
  for (std::uint64_t seed = 0; seed < num_asked(2000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Drawn drawn =
        any_size(random_bundles(seed), static_cast<std::int32_t>(random.between(1, 24)));
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    const std::int32_t widest = problem.sizes().back();
    Nanoseconds together = 0;  // all on all ranks, one after the other
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      if (problem.fits(widest, bundle)) {
        together += problem.least_cost(widest, bundle) +
                    problem.least_fixed(widest) *
                        static_cast<std::int64_t>(problem.items_of(bundle).size());
      }
    }
    const Nanoseconds limit = 2 * together + 1;
    const auto found = find_side_by_side(problem, limit);
    if (!found) continue;
    ++num_found;
    EXPECT_LT(found->time, limit);
    EXPECT_EQ(found->time, step_time(problem, *found));
    EXPECT_GE(found->time, step_bound(problem));
    EXPECT_FALSE(find_side_by_side(problem, step_bound(problem)));
    num_faster += found->time < together ? 1 : 0;
    std::map<ItemId, RankRange> place_of;
    for (const DraftGroup& group : found->groups) {
      for (const DraftGroup& other : found->groups) {
        const bool is_apart = group.ranks.first + group.ranks.size <= other.ranks.first ||
                              other.ranks.first + other.ranks.size <= group.ranks.first;
        EXPECT_TRUE(is_apart || group.ranks == other.ranks);
      }
      for (const ItemId item : group.items) {
        EXPECT_TRUE(place_of.emplace(item, group.ranks).second);
      }
    }
    EXPECT_EQ(place_of.size(), static_cast<std::size_t>(problem.num_items()));
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      for (const ItemId item : problem.items_of(bundle)) {
        EXPECT_EQ(place_of[item], place_of[problem.items_of(bundle).front()]);
      }
    }
  }
  EXPECT_GT(num_found, 0);
  if (is_sampled) return;
  EXPECT_GT(num_found, 500);
  EXPECT_GT(num_faster, 100);
}

}  // namespace
}  // namespace isochron
