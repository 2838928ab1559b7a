// Slots without placeholders that nothing else finds: questions of which the answer is known.

#include "isochron/plan/full_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "isochron/plan/plan.h"
#include "isochron/plan/plan_work.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

constexpr std::int64_t work = 50'000;

std::optional<DraftSlots> tried(Work asked, std::int32_t ranks, Tokens capacity,
                                PlanOptions options, std::int32_t multiple = 1) {
  const Topology topology{.ranks = ranks, .capacity = capacity};
  options.counts = Counts::equal;
  const Problem problem(std::move(asked), topology, plain_cost(10), resolved(options, topology));
  auto slots = try_full_slots(problem, multiple, work);
  if (!slots) return slots;
  std::vector<std::int32_t> times_run(static_cast<std::size_t>(problem.num_items()), 0);
  for (const auto& slot : *slots) {
    std::int64_t next = 0;  // rank
    for (const DraftGroup& group : slot) {
      EXPECT_EQ(group.ranks.first, next);
      next += group.ranks.size;
      EXPECT_FALSE(group.items.empty());
      for (const ItemId item : group.items) ++times_run[static_cast<std::size_t>(item)];
    }
    EXPECT_EQ(next, ranks);
  }
  for (const std::int32_t times : times_run) EXPECT_EQ(times, 1);
  EXPECT_EQ(std::ssize(*slots) % multiple, 0);
  return slots;
}

// Three ranks, two, two and one, which holds two sequences or its neighbour does.
TEST(FullTrial, WhatNeedsWideGroupsLeavesRoomForTheRest) {
  const auto slots = tried(singles({1024, 1310, 2047, 3061, 6}), 8, 1024,
                           {.context = "dynamic:any", .max_context_size = 3});
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->size(), 1U);
}

TEST(FullTrial, AsManyGroupsAsSequences) {
  EXPECT_TRUE(tried(singles({16, 16, 16, 16, 9, 10, 6, 16, 16, 16, 16, 16}), 5, 16,
                    {.context = "dynamic:powers", .max_context_size = 3, .max_sequences = 1}));
  EXPECT_TRUE(tried(singles({1, 16, 13, 16, 14, 6, 3, 30, 16}), 2, 16,
                    {.context = "dynamic:any", .max_sequences = 1}, 2));
}

TEST(FullTrial, PromptsKeepTheirRanks) {
  Work asked = singles({5, 7, 2, 7});
  asked.bundles = {{0, 3}, {1}, {2}};
  const PlanOptions options{
      .context = "static:2", .max_sequences = 1, .keep_groups = KeepGroups::rank};
  const auto slots = tried(asked, 4, 8, options);
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->size(), 2U);
  asked.bundles = {{0, 3, 1}, {2}};
  EXPECT_FALSE(tried(asked, 4, 8, options));
}

TEST(FullTrial, NothingWithoutWorkOrSequences) {
  const Topology topology{.ranks = 2, .capacity = 100};
  const Problem problem(singles({90, 90}), topology, plain_cost(10), resolved({}, topology));
  EXPECT_TRUE(try_full_slots(problem, 1, work));
  EXPECT_FALSE(try_full_slots(problem, 1, 0));
  EXPECT_FALSE(try_full_slots(problem, 3, work));
}

// Of few sequences, whatever the options, the planner finds some plan where there is one.
TEST(FullTrial, MostPlansThatExistAreFound) {
  int num_asked_for = 0;
  int num_found = 0;
  for (std::uint64_t seed = 0; seed < num_asked(1500); ++seed) {
    const StepPlan known = random_plan(seed, {.ranks = 1 + static_cast<std::int32_t>(seed % 7),
                                              .counts = Counts::equal,
                                              .short_ = Short::error,
                                              .num_sequences = 12});
    if (known.batch.lengths.size() > 12 || !known.options.balance) continue;
    const StepPlan plan = plan_step(known.batch, known.topology, known.cost, known.options);
    EXPECT_NE(plan.status, Status::infeasible) << "seed " << seed << ": " << to_json(known);
    num_asked_for += 1;
    num_found += plan.microbatches.empty() ? 0 : 1;
  }
  ASSERT_GT(num_asked_for, 0);
  std::printf("%d of %d found\n", num_found, num_asked_for);
  EXPECT_GE(num_found, num_asked_for - num_asked_for / 200);
}

}  // namespace
}  // namespace isochron
