// Equal counts where every rank runs for itself: what fills the slots that idle, by hand.

#include "isochron/plan/idle_cells.h"

#include <gtest/gtest.h>

#include "tests/plan/equal_counts.h"

namespace isochron {
namespace {

TEST(IdleCells, AreNamedBySlotAndRank) {
  const Problem problem = equal_counts("dynamic:any", {50, 50}, 3);
  const auto cells = idle_cells(problem, {{on(0, 2, {0})}, {on(1, 1, {1})}});
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].slot, 0U);
  EXPECT_EQ(cells[0].ranks.first, 2);
  EXPECT_EQ(cells[1].slot, 1U);
  EXPECT_EQ(cells[1].ranks.first, 0);
  EXPECT_EQ(cells[2].ranks.first, 2);
}

// Both ranks run 80 tokens, the first in two micro-batches. The second splits its own.
TEST(IdleCells, ARankSplitsItsOwnMicrobatchFirst) {
  const Problem problem = equal_counts("dynamic:any", {40, 40, 50, 30}, 2);
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {2, 3})}, {on(0, 1, {1})}};
  fill_idle_cells(problem, slots);
  EXPECT_TRUE(idle_cells(problem, slots).empty());
  EXPECT_EQ(step_time(problem, slots), 100);
}

// A pair runs two sequences, which fit one rank, and idles where the others run a second one. It
// runs its own apart; a rank that took one of them would run it alone, for 60.
TEST(IdleCells, AWideGroupSplitsIntoASlotInWhichAllOfItsRanksIdle) {
  const Problem problem = equal_counts("dynamic:any", {60, 60, 30, 30}, 3);
  DraftSlots slots = {{on(0, 2, {0, 1}), on(2, 1, {2})}, {on(2, 1, {3})}};
  fill_idle_cells(problem, slots);
  EXPECT_TRUE(idle_cells(problem, slots).empty());
  EXPECT_EQ(step_time(problem, slots), 80);
}

// Two ranks idle once, one of them after 90 tokens and one after 20. Of the third, that of 5 goes
// to the late one and that of 30 to the early one.
TEST(IdleCells, TheRankThatIsDoneFirstGetsTheDearerItem) {
  const Problem problem = equal_counts("dynamic:any", {90, 20, 60, 30, 5, 20}, 3);
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2, 3, 4})}, {on(2, 1, {5})}};
  fill_idle_cells(problem, slots);
  EXPECT_TRUE(idle_cells(problem, slots).empty());
  EXPECT_EQ(rank_times(problem, slots), (std::vector<Nanoseconds>{115, 70, 100}));
}

TEST(IdleCells, AMicrobatchKeepsItsLastItem) {
  const Problem problem = equal_counts("dynamic:any", {90, 20}, 3);
  DraftSlots slots = {{on(0, 1, {0}), on(1, 1, {1})}};
  fill_idle_cells(problem, slots);
  EXPECT_EQ(idle_cells(problem, slots).size(), 1U);
}

}  // namespace
}  // namespace isochron
