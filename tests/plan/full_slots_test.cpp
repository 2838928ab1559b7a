// Equal counts where no rank may idle: by hand.

#include "isochron/plan/full_slots.h"

#include <gtest/gtest.h>

#include <utility>

#include "isochron/check/check.h"
#include "isochron/plan/bundles/full_cells.h"
#include "isochron/plan/plan.h"
#include "isochron/plan/slots/tiled_slots.h"
#include "tests/plan/equal_counts.h"

namespace isochron {
namespace {

std::optional<DraftSlots> full_slots(const Problem& problem, const DraftSlots& slots) {
  return FullSlots(problem).find(slots);
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

// Powers of two that add up to 7 are 4, 2 and 1.
TEST(FullSlots, ThreeSequencesFillAPrimeNumberOfRanks) {
  const Problem problem = equal_counts("dynamic", {20, 90, 40}, 7);
  const auto full = full_slots(problem, {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2}), on(3, 1, {}),
                                          on(4, 1, {}), on(5, 1, {}), on(6, 1, {})}});
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  ASSERT_EQ(full->size(), 1U);
  EXPECT_EQ(full->front().size(), 3U);
  EXPECT_LE(step_time(problem, *full), 33);
}

// Two groups of powers of two never fill 7 ranks.
TEST(FullSlots, TwoSequencesRunOnAllOfAPrimeNumberOfRanks) {
  const Problem problem = equal_counts("dynamic", {60, 30}, 7);
  const auto full = full_slots(problem, {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {}), on(3, 1, {}),
                                          on(4, 1, {}), on(5, 1, {}), on(6, 1, {})}});
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  for (const auto& slot : *full) EXPECT_EQ(slot.front().ranks.size, 7);
}

TEST(FullSlots, OneSequenceRunsOnAllRanks) {
  const Problem problem = equal_counts("dynamic", {60}, 3);
  const auto full = full_slots(problem, {{on(0, 1, {0}), on(1, 1, {}), on(2, 1, {})}});
  ASSERT_TRUE(full);
  ASSERT_EQ(full->size(), 1U);
  EXPECT_EQ(full->front().front().ranks.size, 3);
}

TEST(FullSlots, AsManySequencesAsRanksHaveOneEach) {
  const Problem problem = equal_counts("dynamic", {90, 90, 90, 90, 90}, 5);
  const auto full = full_slots(
      problem, {{on(0, 1, {0}), on(1, 1, {1}), on(2, 1, {2}), on(3, 1, {3}), on(4, 1, {})},
                {on(0, 1, {4}), on(1, 1, {}), on(2, 1, {}), on(3, 1, {}), on(4, 1, {})}});
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  EXPECT_EQ(step_time(problem, *full), 100);
}

// Cells of two ranks and one: 2 slots of 40. On all ranks 4 slots take 100.
TEST(FullSlots, PromptsGetCellsOfSeveralSizes) {
  Work work = singles({60, 60, 30, 30});
  work.bundles = {{0, 1}, {2, 3}};
  const Topology topology{.ranks = 3, .capacity = 100};
  const Problem problem(std::move(work), topology, plain_cost(10),
                        resolved({.context = "dynamic:any",
                                  .counts = Counts::equal,
                                  .max_sequences = 1,
                                  .keep_groups = KeepGroups::rank},
                                 topology));
  const auto full = find_full_cells(problem, 1);
  ASSERT_TRUE(full);
  EXPECT_FALSE(has_placeholder(*full));
  EXPECT_EQ(step_time(problem, *full), 80);
  for (const auto& slot : *full) EXPECT_EQ(slot.size(), 2U);
}

// As many cells as sequences: more seats in a slot than an integer of 32 bits counts.
TEST(FullSlots, PromptsHaveAnyNumberOfSeats) {
  Work work = singles({60, 60, 60, 60});
  work.bundles = {{0}, {1}, {2}, {3}};
  const Topology topology{.ranks = 4, .capacity = 100};
  const Problem problem(std::move(work), topology, plain_cost(10),
                        resolved({.context = "dynamic",
                                  .counts = Counts::equal,
                                  .max_sequences = 1 << 30,
                                  .keep_groups = KeepGroups::rank},
                                 topology));
  const auto full = find_full_cells(problem, 1);
  ASSERT_TRUE(full);
  EXPECT_EQ(step_time(problem, *full), 70);
}

TEST(FullSlots, AreOnAllRanksWhereNothingFitsTheSmallestGroups) {
  const Topology topology{.ranks = 7, .capacity = 100};
  const auto whole = [&](std::vector<Tokens> lengths, Short short_) {
    const Problem problem(
        singles(std::move(lengths)), topology, plain_cost(10),
        resolved({.context = "dynamic", .counts = Counts::equal, .short_ = short_}, topology));
    return find_whole_groups(problem);
  };
  ASSERT_NE(whole({150, 150, 350}, Short::error), nullptr);
  EXPECT_EQ(whole({150, 150, 350}, Short::error)->sizes().front(), 7);
  EXPECT_EQ(whole({150, 150, 50}, Short::error), nullptr);
  EXPECT_EQ(whole({150, 150, 350}, Short::empty), nullptr);
}

TEST(FullSlots, OneRankIsNoSpecialQuestion) {
  const Topology topology{.ranks = 1, .capacity = 100};
  const Problem problem(
      singles({50, 60}), topology, plain_cost(10),
      resolved({.context = "dynamic", .counts = Counts::equal, .short_ = Short::error}, topology));
  EXPECT_EQ(find_whole_groups(problem), nullptr);
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

// Prompts that need four ranks, and one that fits a single one: of 97 ranks the 24 groups of four
// leave one over, which no other prompt can have.
TEST(FullSlots, APromptOfItsOwnTakesTheRankThatWideCellsLeaveOver) {
  Batch batch;
  for (int prompt = 0; prompt < 30; ++prompt) {
    for (int part = 0; part < 8; ++part) {
      batch.lengths.push_back(prompt == 7 ? 200 + 50 * part : 900 + 700 * part);
      batch.groups.emplace_back(prompt);
    }
    batch.group_names.push_back(std::to_string(prompt));
  }
  const Topology topology{
      .ranks = 97, .capacity = 2048, .pipeline = {.stages = 2, .virtual_ = 2, .group = 2}};
  PlanOptions options{.context = "dynamic", .keep_groups = KeepGroups::rank};
  const CostModel cost = cost_preset("qwen3-8b_h100");
  const StepPlan idle = plan_step(batch, topology, cost, options);
  options.short_ = Short::error;
  const StepPlan full = plan_step(batch, topology, cost, options);
  EXPECT_EQ(find_violation(to_json(full), &batch).value_or("valid"), "valid");
  ASSERT_FALSE(full.microbatches.empty()) << full.reason;
  EXPECT_LE(full.predicted_step_ns, 2 * idle.predicted_step_ns);
}

// Groups of three would be the even way, but the second one crosses the border of a node and pays
// the dear link; four ranks and two do not.
TEST(FullSlots, TwoSequencesKeepClearOfTheBorderOfANode) {
  CostModel cost = plain_cost();
  cost.context = {{.kind = ContextKind::all_gather_kv,
                   .bytes_per_token = 1,
                   .links = {{4, 1, 0}, {1 << 20, 1, 1e6}}}};
  Batch batch;
  batch.lengths = {4000, 2000};
  for (const Sync sync : {Sync::microbatch, Sync::step}) {
    const StepPlan plan = plan_step(
        batch, {.ranks = 6, .capacity = 8000}, cost,
        {.context = "dynamic", .sync = sync, .counts = Counts::equal, .short_ = Short::error});
    ASSERT_FALSE(plan.microbatches.empty()) << plan.reason;
    EXPECT_LT(plan.predicted_step_ns, 1'000'000) << "no group needs the dear link";
  }
}

// Ten ranks on nodes of eight without a link between them: no group has all ranks, so what is left
// over after the dearest have filled slots of their own has nowhere to run.
TEST(FullSlots, SequencesAreDealtInTurnsWhereNoGroupHasAllRanks) {
  CostModel cost = plain_cost(10);
  cost.context = {
      {.kind = ContextKind::all_gather_kv, .bytes_per_token = 1, .links = {{8, 10, 0}}}};
  Batch batch;
  for (const Tokens length : {1000, 1000, 1000, 600, 500, 500, 500, 500, 400, 400, 400, 300, 300})
    batch.lengths.push_back(length);
  const Topology topology{.ranks = 10, .capacity = 1000};
  PlanOptions options{.context = "dynamic", .counts = Counts::equal, .short_ = Short::error};
  const Problem problem(singles(batch.lengths), topology, cost, resolved(options, topology));
  const auto dealt = TiledSlots(problem, 1).dealt(5);
  ASSERT_TRUE(dealt);
  EXPECT_EQ(dealt->size(), 5U);
  EXPECT_FALSE(has_placeholder(*dealt));
  std::size_t num_items = 0;
  for (const auto& slot : *dealt) {
    std::int64_t num_ranks = 0;
    for (const DraftGroup& group : slot) {
      num_ranks += group.ranks.size;
      num_items += group.items.size();
    }
    EXPECT_EQ(num_ranks, 10);
  }
  EXPECT_EQ(num_items, batch.lengths.size());
}

}  // namespace
}  // namespace isochron
