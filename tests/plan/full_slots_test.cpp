// Equal counts where no rank may idle: by hand.

#include "isochron/plan/full_slots.h"

#include <gtest/gtest.h>

#include "tests/plan/equal_counts.h"

namespace isochron {
namespace {

std::optional<DraftSlots> full_slots(const Problem& problem, const DraftSlots& slots) {
  return find_full_slots(problem, 1, slots,
                         [&](const DraftSlots& each) { return step_time(problem, each); });
}

// Neither sequence can widen over the two ranks that idle. One after the other on all ranks they
// take 40, side by side on two ranks each 30.
TEST(FullSlots, TheEarliestOfAllWaysIsTaken) {
  const Problem problem = equal_counts("dynamic", {40, 40}, 4);
  const auto full =
      full_slots(problem, {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {}), on(3, 1, {})}});
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  EXPECT_EQ(step_time(problem, *full), 30);
}

// The first widens over its neighbour; the others stay on their ranks.
TEST(FullSlots, AGroupWidensOverTheRankBesideIt) {
  const Problem problem = equal_counts("dynamic", {60, 30, 30}, 4);
  const auto full =
      full_slots(problem, {{on(0, 1, {0}), on(1, 1, {}), on(2, 1, {1}), on(3, 1, {2})}});
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  EXPECT_EQ(step_time(problem, *full), 40);
}

TEST(FullSlots, AreLeftAsTheyAre) {
  const Problem problem = equal_counts("dynamic", {60, 30}, 2);
  const auto full = full_slots(problem, {{on(0, 1, {0}), on(1, 1, {1})}});
  ASSERT_TRUE(full);
  EXPECT_EQ(step_time(problem, *full), 70);
}

TEST(FullSlots, ThereAreNoneOfOneSequenceOnGroupsOfOneRank) {
  const Topology topology{.ranks = 2, .capacity = 100};
  const Problem problem(singles({90}), topology, plain_cost(10),
                        resolved({.counts = Counts::equal}, topology));
  EXPECT_FALSE(full_slots(problem, {{on(0, 1, {0}), on(1, 1, {})}}));
}

}  // namespace
}  // namespace isochron
