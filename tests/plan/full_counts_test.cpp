// Which slots without placeholders counting rules out: by hand, and never those of a valid plan.
// What exhaustive search says is compared in plan_oracle_test.cpp.

#include "isochron/plan/full_counts.h"

#include <gtest/gtest.h>

#include <utility>

#include "isochron/core/random.h"
#include "isochron/plan/plan_work.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"
#include "tests/support/random_plan.h"

namespace isochron {
namespace {

// On ranks of 100 tokens.
bool is_excluded(Work work, std::int32_t ranks, PlanOptions options, PipelineShape shape = {}) {
  const Topology topology{.ranks = ranks, .capacity = 100, .pipeline = shape};
  options.counts = Counts::equal;
  return are_full_slots_excluded(
      Problem(std::move(work), topology, plain_cost(10), resolved(options, topology)));
}

bool is_excluded(const std::vector<Tokens>& lengths, std::int32_t ranks, PlanOptions options = {},
                 PipelineShape shape = {}) {
  return is_excluded(singles(lengths), ranks, std::move(options), std::move(shape));
}

TEST(FullCounts, EveryRankNeedsASequence) {
  EXPECT_TRUE(is_excluded({90}, 2));
  EXPECT_FALSE(is_excluded({90, 90}, 2));
  EXPECT_FALSE(is_excluded({90}, 1));
}

TEST(FullCounts, WhatFillsARankAloneDoesNotShare) {
  EXPECT_TRUE(is_excluded({90, 90, 90}, 2));
  EXPECT_FALSE(is_excluded({90, 90, 10}, 2));
  EXPECT_FALSE(is_excluded({90, 90, 90, 90}, 2));
}

TEST(FullCounts, ManySequencesOfOneEachFillWholeSlots) {
  const std::vector<Tokens> twelve(12, 1);
  EXPECT_TRUE(is_excluded(twelve, 8, {.max_sequences = 1}));
  EXPECT_FALSE(is_excluded(twelve, 8, {.max_sequences = 2}));
  EXPECT_FALSE(is_excluded(twelve, 6, {.max_sequences = 1}));
}

TEST(FullCounts, WideGroupsAreAllRanks) {
  EXPECT_TRUE(is_excluded({90}, 4, {.context = "static:2"}));
  EXPECT_FALSE(is_excluded({90, 90}, 4, {.context = "static:2"}));
  EXPECT_FALSE(is_excluded({90}, 7, {.context = "dynamic"}));
}

// Groups of at most two ranks: two are not all of five.
TEST(FullCounts, GroupsOfLimitedSizeAreMany) {
  const PlanOptions narrow{.context = "dynamic:any", .max_context_size = 2};
  EXPECT_TRUE(is_excluded({90, 90}, 5, narrow));
  EXPECT_FALSE(is_excluded({90, 90, 90}, 5, narrow));
}

// All need groups of two ranks, which never are five.
TEST(FullCounts, NoSumOfSizesIsAllRanks) {
  EXPECT_TRUE(is_excluded({150, 150, 150}, 5, {.context = "dynamic", .max_context_size = 2}));
  EXPECT_FALSE(is_excluded({150, 150, 50}, 5, {.context = "dynamic", .max_context_size = 2}));
}

TEST(FullCounts, SlotsAreAMultiple) {
  const PipelineShape shape{.stages = 2, .virtual_ = 2, .group = 2};
  EXPECT_TRUE(is_excluded({10}, 1, {}, shape));
  EXPECT_FALSE(is_excluded({10, 10}, 1, {}, shape));
  EXPECT_TRUE(is_excluded({90, 90, 90}, 1, {}, shape));
  EXPECT_FALSE(is_excluded({90, 90, 10}, 1, {}, shape));
}

// The prompt of three sequences takes three slots; the other cell has one sequence.
TEST(FullCounts, PromptsKeepTheirRanks) {
  Work work = singles({10, 10, 10, 10});
  work.bundles = {{0, 1, 2}, {3}};
  EXPECT_TRUE(is_excluded(work, 2, {.max_sequences = 1, .keep_groups = KeepGroups::rank}));
  EXPECT_FALSE(is_excluded(work, 2, {.max_sequences = 3, .keep_groups = KeepGroups::rank}));
  EXPECT_TRUE(is_excluded(work, 4, {.keep_groups = KeepGroups::rank}));
  EXPECT_FALSE(is_excluded(std::move(work), 4, {}));
}

// The first ones exceed all ranks, each of which takes a slot.
TEST(FullCounts, WhatStandsAloneHasASlotToItself) {
  const auto is_excluded_beside = [](const std::vector<Tokens>& alone, std::vector<Tokens> others,
                                     std::int32_t max_size, const PipelineShape& shape = {}) {
    const Topology topology{.ranks = 2, .capacity = 100, .pipeline = shape};
    others.insert(others.begin(), alone.begin(), alone.end());
    Problem problem(singles(others), topology, plain_cost(10),
                    resolved({.context = "dynamic",
                              .max_context_size = max_size,
                              .counts = Counts::equal,
                              .oversize = Oversize::alone},
                             topology));
    for (std::size_t i = 0; i < alone.size(); ++i) problem.set_alone(static_cast<ItemId>(i), 2);
    return are_full_slots_excluded(problem);
  };
  EXPECT_FALSE(is_excluded_beside({250}, {90}, 2));
  EXPECT_TRUE(is_excluded_beside({250}, {90}, 1)) << "the other rank idles";
  EXPECT_FALSE(is_excluded_beside({250}, {90, 90}, 1));
  EXPECT_FALSE(is_excluded_beside({250, 300}, {}, 1));
  const PipelineShape in_pairs{.stages = 2, .virtual_ = 2, .group = 2};
  EXPECT_FALSE(is_excluded_beside({250, 300}, {}, 1, in_pairs));
  EXPECT_TRUE(is_excluded_beside({250, 300, 310}, {}, 1, in_pairs));
  EXPECT_FALSE(is_excluded_beside({250}, {90, 90}, 1, in_pairs));
  EXPECT_TRUE(is_excluded_beside({250, 300}, {90, 90}, 1, in_pairs)) << "three slots";
}

TEST(FullCounts, NeverExcludeAPlanThatThereIs) {
  int num_kept = 0;
  for (std::uint64_t seed = 0; seed < num_instances(4000); ++seed) {
    const StepPlan plan = random_plan(seed, {.counts = Counts::equal, .short_ = Short::error});
    Problem problem(work_of(plan, num_units(plan)), plan.topology, plan.cost, plan.options);
    ASSERT_EQ(apply_oversize(plan, problem), std::nullopt) << "seed " << seed;
    EXPECT_FALSE(are_full_slots_excluded(problem)) << "seed " << seed << ": " << to_json(plan);
    num_kept += plan.options.keep_groups == KeepGroups::rank ? 1 : 0;
  }
  EXPECT_GT(num_kept, 0);
}

// Two in each micro-batch: a slot of four ranks takes from 4 to 8.
TEST(FullCounts, FewerBundlesMayFillSlots) {
  const auto most = [](std::size_t num_sequences, std::int32_t ranks, std::int32_t max_sequences,
                       Tokens length = 1) {
    const Topology topology{.ranks = ranks, .capacity = 100};
    const Problem problem(
        singles(std::vector<Tokens>(num_sequences, length)), topology, plain_cost(10),
        resolved({.counts = Counts::equal, .max_sequences = max_sequences}, topology));
    return most_bundles_of_full_slots(problem);
  };
  EXPECT_EQ(most(11, 4, 1), 8);
  EXPECT_EQ(most(12, 4, 1), 8) << "fewer than all";
  EXPECT_EQ(most(11, 4, 2), 10);
  EXPECT_EQ(most(11, 4, 0, 60), 8) << "no two of them fit a rank";
  EXPECT_EQ(most(3, 4, 1), 0);
  EXPECT_EQ(most(1, 1, 1), 0);
}

TEST(FullCounts, AllBetweenAreExcluded) {
  int num_left_out = 0;
  for (std::uint64_t seed = 0; seed < num_instances(2000); ++seed) {
    Random random(seed);
    const auto below = [&](std::uint64_t end) {
      return static_cast<std::int32_t>(random.below(end));
    };
    const std::int32_t ranks = 1 + below(9);
    const PipelineShape in_pairs{.stages = 2, .virtual_ = 2, .group = 2};
    const Topology topology{
        .ranks = ranks, .capacity = 100, .pipeline = below(2) == 0 ? PipelineShape{} : in_pairs};
    const bool is_kept = below(3) == 0;
    const PlanOptions options{.context = below(2) == 0 ? "static:1" : "dynamic",
                              .counts = Counts::equal,
                              .max_sequences = below(3),
                              .keep_groups = is_kept ? KeepGroups::rank : KeepGroups::none};
    std::vector<Tokens> lengths;
    std::vector<std::vector<ItemId>> bundles;
    const std::int32_t count = 1 + below(30);
    for (ItemId item = 0; item < count; ++item) {
      lengths.push_back(1 + below(100));
      if (!is_kept || bundles.empty() || below(2) == 0) bundles.emplace_back();
      bundles.back().push_back(item);
    }
    const auto first_of = [&](BundleId num_bundles) {
      Work work;
      for (BundleId bundle = 0; bundle < num_bundles; ++bundle) {
        work.bundles.push_back(bundles[static_cast<std::size_t>(bundle)]);
        for (const ItemId item : bundles[static_cast<std::size_t>(bundle)]) {
          work.lengths.push_back(lengths[static_cast<std::size_t>(item)]);
          work.items.push_back({SequenceId(item)});
        }
      }
      return Problem(std::move(work), topology, plain_cost(10), resolved(options, topology));
    };
    const auto num_bundles = static_cast<BundleId>(bundles.size());
    const BundleId most = most_bundles_of_full_slots(first_of(num_bundles));
    ASSERT_LT(most, num_bundles) << "seed " << seed;
    for (BundleId between = most + 1; between < num_bundles; ++between) {
      EXPECT_TRUE(are_full_slots_excluded(first_of(between)))
          << "seed " << seed << ": " << between << " of " << num_bundles;
      ++num_left_out;
    }
  }
  EXPECT_GT(num_left_out, 1000);
}

}  // namespace
}  // namespace isochron
