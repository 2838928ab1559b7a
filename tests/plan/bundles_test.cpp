// Bundles of sequences that keep their ranks: their bound and their search, beside the best of all
// places, which dynamic programming finds for few bundles.

#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/plan/bounds.h"
#include "isochron/plan/bundle_search.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/step_search.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

// `num_bundles` bundles of one to `most_items` sequences on a power of two of ranks.
Work random_work(Random& random, std::int32_t num_bundles, std::int64_t most_items,
                 Tokens longest) {
  Work work;
  for (std::int32_t b = 0; b < num_bundles; ++b) {
    const std::int64_t count = random.between(1, most_items);
    work.bundles.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      work.bundles.back().push_back(static_cast<ItemId>(work.items.size()));
      work.items.push_back({SequenceId(static_cast<std::int32_t>(work.lengths.size()))});
      work.lengths.push_back(random.between(1, longest));
    }
  }
  return work;
}

struct Drawn {
  CostModel cost;
  Topology topology;
  PlanOptions options;
  Work work;
};

Drawn random_bundles(std::uint64_t seed) {
  Random random(seed);
  Drawn drawn;
  drawn.cost = random_cost(random);
  drawn.cost.context.resize(1);
  drawn.topology.ranks = std::int32_t{1} << random.between(0, 5);
  drawn.topology.capacity = random.below(3) == 0 ? 4096 : 16'384;
  drawn.options.context = "dynamic";
  drawn.options.keep_groups = KeepGroups::rank;
  if (random.below(4) == 0) drawn.options.max_sequences = 3;
  drawn.options = resolved(drawn.options, drawn.topology);
  const auto num_bundles = static_cast<std::int32_t>(random.between(1, 8));
  drawn.work = random_work(random, num_bundles, random.below(2) == 0 ? 1 : 12,
                           drawn.topology.capacity * random.between(1, 2) / 2);
  return drawn;
}

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

}  // namespace
}  // namespace isochron
