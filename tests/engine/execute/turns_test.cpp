#include "isochron/engine/execute/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/execute/plan_by_hand.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

using testing::ElementsAre;

// Two groups that share rank 1, then rank 2 alone.
const StepPlan chain =
    plan_of({8, 8, 8}, 4, {{{0, 2, {0}}}, {{1, 2, {1}}, {3, 1, {}}}, {{2, 1, {2}}}});

std::vector<std::int32_t> slots_of(std::int32_t rank) {
  std::vector<std::int32_t> slots;
  for (const Turn& turn : turns_of(chain, rank)) slots.push_back(turn.slot);
  return slots;
}

TEST(Turns, ARankRunsTheGroupsItIsInAndNoPlaceholder) {
  EXPECT_THAT(slots_of(0), ElementsAre(0));
  EXPECT_THAT(slots_of(1), ElementsAre(0, 1));
  EXPECT_THAT(slots_of(2), ElementsAre(1, 2));
  EXPECT_THAT(slots_of(3), ElementsAre());
}

TEST(Turns, GradientsAreSummedDuringABackwardThatIsTheLastOfAllItsMembers) {
  EXPECT_FALSE(may_overlap_reduction(chain, 0));  // rank 1 has another turn
  EXPECT_FALSE(may_overlap_reduction(chain, 1));  // rank 2 has
  EXPECT_TRUE(may_overlap_reduction(chain, 2));
  EXPECT_FALSE(may_overlap_reduction(chain, 3));  // no backward at all
}

// Rows of 3 and 5 tokens on two ranks: chunks of 1 of 4, and of 2 of 8.
TEST(Turns, ATokenIsPredictedWhereTheOneBeforeItLies) {
  const StepPlan plan = plan_of({3, 5}, 2, {{{0, 2, {0, 1}}}});
  const auto token = [](int row, int index) { return PredictedToken{SequenceId(row), index}; };
  EXPECT_THAT(predicted_tokens(plan, 0), ElementsAre(token(0, 1), token(1, 1), token(1, 2)));
  EXPECT_THAT(predicted_tokens(plan, 1), ElementsAre(token(0, 2), token(1, 3), token(1, 4)));
}

TEST(Turns, EveryTokenAfterTheFirstIsPredictedOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const StepPlan plan = random_plan(seed, {.tensor_parallel = 1, .stages = 1, .virtual_ = 1});
    std::vector<std::vector<int>> times;
    for (const Tokens length : plan.batch.lengths) {
      times.emplace_back(static_cast<std::size_t>(length), 0);
    }
    for (std::int32_t rank = 0; rank < plan.topology.ranks; ++rank) {
      for (const PredictedToken& token : predicted_tokens(plan, rank)) {
        ++times[token.row.index()][static_cast<std::size_t>(token.token)];
      }
    }
    for (std::size_t row = 0; row < times.size(); ++row) {
      const bool is_dropped =
          std::ranges::count(plan.dropped, SequenceId(static_cast<std::int32_t>(row))) > 0;
      EXPECT_EQ(times[row][0], 0);
      for (std::size_t t = 1; t < times[row].size(); ++t) {
        ASSERT_EQ(times[row][t], is_dropped ? 0 : 1) << "row " << row << ", token " << t;
      }
    }
  }
}

}  // namespace
}  // namespace isochron
