#include "isochron/plan/purse.h"

#include <gtest/gtest.h>

#include "isochron/plan/default_effort.h"
#include "isochron/plan/plan_work.h"
#include "isochron/plan/related_problems.h"

namespace isochron {
namespace {

TEST(Purse, PaysForEverythingUntilItIsLimited) {
  Purse purse;
  EXPECT_TRUE(purse.pays(1e18));
  purse.limit(100);
  EXPECT_EQ(purse.left(), 100);
}

TEST(Purse, TakesWhatItPaysAndNoMoreThanThereIs) {
  Purse purse;
  purse.limit(100);
  EXPECT_FALSE(purse.pays(101));
  EXPECT_TRUE(purse.pays(60));
  EXPECT_EQ(purse.left(), 40);
  EXPECT_FALSE(purse.pays(41));
  EXPECT_TRUE(purse.pays(40));
  EXPECT_EQ(purse.left(), 0);
}

TEST(Purse, PaysForWhatMaySaveManyTimesItsCost) {
  Purse purse;
  purse.limit(10);
  EXPECT_FALSE(purse.pays(20, 159));
  EXPECT_TRUE(purse.pays(20, 160));
  EXPECT_EQ(purse.left(), 0);  // never below
}

TEST(Purse, KeepsItsFirstLimit) {
  Purse purse;
  purse.limit(10);
  purse.limit(1000);
  EXPECT_EQ(purse.left(), 10);
}

// As many equal sequences on four ranks.
StepPlan equal_sequences(std::size_t count, const std::string& context) {
  StepPlan plan;
  plan.topology = {.ranks = 4, .capacity = 1000};
  plan.options = resolved({.context = context}, plan.topology);
  plan.cost = cost_preset("verl");
  plan.batch.lengths.assign(count, 500);
  return plan;
}

Problem problem_of(const StepPlan& plan) {
  return Problem(work_of(plan, plan.batch.lengths.size()), plan.topology, plan.cost, plan.options);
}

TEST(Purse, IsSharedByQuestionsOnTheWayToAPlan) {
  const StepPlan plan = equal_sequences(20, "dynamic");
  const Problem problem = problem_of(plan);
  limit_purse(problem, 1'000'000'000);
  EXPECT_EQ(problem.purse()->left(), 7e6);  // of a step of a second
  const auto single = with_single_sequences(problem);
  const auto fixed = with_static_size(problem, 2);
  EXPECT_TRUE(single->purse()->pays(3e6));
  EXPECT_TRUE(fixed->purse()->pays(3e6));
  EXPECT_EQ(problem.purse()->left(), 1e6);
}

TEST(Purse, OfAlignedGroupsIsTheirOwn) {
  const StepPlan plan = equal_sequences(20, "dynamic:any");
  const Problem problem = problem_of(plan);
  limit_purse(problem, 1'000'000'000);
  EXPECT_EQ(problem.purse()->left(), 3e6);
  const auto aligned = find_aligned(problem);
  ASSERT_NE(aligned, nullptr);
  limit_purse(*aligned, 1'000'000'000);
  EXPECT_EQ(aligned->purse()->left(), 7e6);  // as if they were asked alone
}

TEST(Purse, OfAShortStepIsThatOfATenthOfASecond) {
  const StepPlan plan = equal_sequences(20, "dynamic");
  const Problem problem = problem_of(plan);
  limit_purse(problem, 2'000'000);
  EXPECT_EQ(problem.purse()->left(), 7e5);
}

TEST(Purse, OfVeryFewSequencesIsEnoughToTryThemAll) {
  const StepPlan plan = equal_sequences(12, "dynamic");
  const Problem problem = problem_of(plan);
  limit_purse(problem, 2'000'000);
  EXPECT_EQ(problem.purse()->left(), 2e6);
}

TEST(Purse, HasNoLimitWhereTheEffortIsGiven) {
  StepPlan plan = equal_sequences(20, "dynamic");
  plan.options.effort = 10;
  const Problem problem = problem_of(plan);
  limit_purse(problem, 1'000'000'000);
  EXPECT_TRUE(problem.purse()->pays(1e18));
}

}  // namespace
}  // namespace isochron
