// Few items on groups that nest: by hand, beside the best of all steps, and as many as ranks.

#include "isochron/plan/steps/nested_anneal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/plan.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// All items one after another on all ranks.
Draft in_a_row(const Problem& problem) {
  Draft draft;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    draft.groups.push_back({.ranks = {.first = 0, .size = problem.num_ranks()}, .items = {item}});
  }
  draft.time = step_time(problem, draft);
  return draft;
}

PlanOptions dynamic(const Topology& topology, std::int32_t max_sequences = 0) {
  return resolved({.context = "dynamic", .max_sequences = max_sequences}, topology);
}

// Every item once, in a group that may stand there and holds it.
void expect_valid(const Problem& problem, const Draft& draft) {
  std::vector<int> times(static_cast<std::size_t>(problem.num_items()), 0);
  for (const DraftGroup& group : draft.groups) {
    ASSERT_FALSE(group.items.empty());
    ASSERT_GE(problem.price_of(group.ranks), 0);
    const auto size = static_cast<std::int32_t>(group.ranks.size);
    EXPECT_EQ(group.ranks.first % size, 0);
    Tokens tokens = 0;
    for (const ItemId item : group.items) {
      ++times[static_cast<std::size_t>(item)];
      tokens += problem.tokens(size, item);
    }
    EXPECT_LE(tokens, problem.capacity() * size);
    const std::int32_t limit = problem.options().max_sequences;
    if (limit > 0) {
      EXPECT_LE(group.items.size(), static_cast<std::size_t>(limit));
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), problem.num_items());
  EXPECT_EQ(step_time(problem, draft), draft.time);
}

TEST(NestedAnneal, FillsWhatAWideGroupLeaves) {
  const Topology topology{.ranks = 4, .capacity = 10};
  const CostModel cost{.name = "linear", .linear_ns = 1000};
  // The first needs all ranks, which then have half of the time left for four more.
  const Problem problem(singles({40, 10, 10, 10, 10}), topology, cost, dynamic(topology));
  ASSERT_TRUE(has_few_nested_items(problem));
  const auto found = anneal_nested(problem, 20'000, 30'000, 1000);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->time, 20'000);
  expect_valid(problem, *found);
}

TEST(NestedAnneal, FindsNothingWhereNothingIsShorter) {
  const Topology topology{.ranks = 4, .capacity = 10};
  const CostModel cost{.name = "linear", .linear_ns = 1000};
  const Problem problem(singles({40}), topology, cost, dynamic(topology));
  const Nanoseconds least = in_a_row(problem).time;
  for (const std::int64_t num_trials : {0, 1, 100}) {
    EXPECT_FALSE(anneal_nested(problem, 1, least, num_trials)) << num_trials;
  }
  EXPECT_TRUE(anneal_nested(problem, 1, least + 1, 100));
}

TEST(NestedAnneal, LongStepsAreWorthManyChanges) {
  const Topology topology{.ranks = 4, .capacity = 10};
  const CostModel cost{.name = "linear", .linear_ns = 1000};
  const auto worth = [&](Nanoseconds bound, std::optional<std::int64_t> effort,
                         std::size_t num_items = 2) {
    PlanOptions options = dynamic(topology);
    options.effort = effort;
    const Problem problem(singles(std::vector<Tokens>(num_items, 10)), topology, cost, options);
    return nested_changes_worth(problem, bound, 10'000);
  };
  EXPECT_EQ(worth(400'000'000, {}), 10'000);
  EXPECT_EQ(worth(300'000'000, {}, 25), 10'000);  // which are not annealed again
  EXPECT_EQ(worth(9'000'000, {}), 2500);          // as a step of 100 ms
  EXPECT_EQ(worth(9'000'000, {}, 20), 0);         // too few for so many
  EXPECT_EQ(worth(9'000'000, 10'000), 10'000);
  EXPECT_EQ(worth(9'000'000'000, {}), 40'000);
}

TEST(NestedAnneal, IsForFewItemsOnGroupsThatNest) {
  const CostModel cost{.name = "linear", .linear_ns = 1000};
  const auto is_for = [&](std::int32_t ranks, std::size_t count, const char* context) {
    const Topology topology{.ranks = ranks, .capacity = 10};
    const Problem problem(singles(std::vector<Tokens>(count, 5)), topology, cost,
                          resolved({.context = context}, topology));
    return has_few_nested_items(problem);
  };
  EXPECT_TRUE(is_for(4, 16, "dynamic"));
  EXPECT_FALSE(is_for(4, 20, "dynamic"));
  EXPECT_FALSE(is_for(6, 6, "dynamic"));  // 2 and 3 do not nest
  EXPECT_FALSE(is_for(4, 4, "dynamic:any"));
  EXPECT_FALSE(is_for(4, 4, "static:2"));
}

TEST(NestedAnneal, IsNearTheBestOfAllSteps) {
  std::vector<double> ratios;
  const std::uint64_t num_questions = num_instances(200);
  for (std::uint64_t seed = 0; seed < num_questions; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Topology topology{.ranks = 1 << random.between(1, 4), .capacity = 1024};
    std::vector<Tokens> lengths;
    for (std::int64_t i = random.between(2, 8); i > 0; --i) {
      const Tokens most = random.below(3) == 0 ? 1024 * topology.ranks : 1024;
      lengths.push_back(random.between(1, most));
    }
    CostModel cost = cost_7b_h100();
    cost.microbatch_ns = random.below(2) == 0 ? 0 : 5e6;
    const auto max_sequences = static_cast<std::int32_t>(random.below(3));
    const Problem problem(singles(lengths), topology, cost, dynamic(topology, max_sequences));
    if (!has_few_nested_items(problem)) continue;
    Draft found = in_a_row(problem);
    const auto nested = anneal_nested(problem, step_bound(problem), found.time, 5000);
    if (nested) {
      EXPECT_LT(nested->time, found.time);
      found = *nested;
    }
    expect_valid(problem, found);
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact.has_value());
    EXPECT_GE(found.time, exact->draft.time);
    ratios.push_back(static_cast<double>(found.time) / static_cast<double>(exact->draft.time));
  }
  ASSERT_FALSE(ratios.empty());
  const double sum = std::accumulate(ratios.begin(), ratios.end(), 0.0);
  std::printf("mean %.5f of the best\n", sum / static_cast<double>(ratios.size()));
  EXPECT_LE(sum / static_cast<double>(ratios.size()), 1.01);
}

// Four long sequences, which need several ranks each, among others.
std::vector<Tokens> drawn_lengths(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<Tokens> lengths;
  while (lengths.size() < count) {
    lengths.push_back(lengths.size() < 4 ? random.between(60'000, 120'000)
                                         : random.between(1000, 20'000));
  }
  return lengths;
}

// The mean over five batches, beside the bound.
double mean_ratio(const PlanOptions& options) {
  const Topology topology{.ranks = 64, .capacity = 16'384};
  constexpr std::uint64_t num_batches = 5;
  double mean = 0;
  for (std::uint64_t seed = 0; seed < num_batches; ++seed) {
    Batch batch;
    batch.lengths = drawn_lengths(seed, 64);
    const StepPlan plan = plan_step(batch, topology, cost_7b_h100(), options);
    const double ratio =
        static_cast<double>(plan.predicted_step_ns) / static_cast<double>(plan.lower_bound_ns);
    std::printf("batch %d: %.4f of the bound\n", static_cast<int>(seed), ratio);
    mean += ratio / num_batches;
  }
  return mean;
}

// Searches for many sequences end 7 % after the bound, with equal counts 8 %.
TEST(NestedAnneal, AsManySequencesAsRanksFillTheStep) {
  EXPECT_LE(mean_ratio({.context = "dynamic"}), 1.02);
}

TEST(NestedAnneal, AsManySequencesAsRanksFillTheStepWithEqualCounts) {
  EXPECT_LE(mean_ratio({.context = "dynamic", .counts = Counts::equal}), 1.04);
}

}  // namespace
}  // namespace isochron
