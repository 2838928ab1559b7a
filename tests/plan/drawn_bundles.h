#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/problem.h"
#include "tests/plan/tiny_question.h"
#include "tests/support/num_instances.h"

// Questions whose sequences stay in bundles.

namespace isochron {

// `num_bundles` bundles of one to `most_items` sequences on a power of two of ranks.
inline Work random_work(Random& random, std::int32_t num_bundles, std::int64_t most_items,
                        Tokens longest) {
  Work work;
  for (std::int32_t b = 0; b < num_bundles; ++b) {
    const std::int64_t count = random.between(1, most_items);
    work.bundles.push_back({});
    for (std::int64_t i = 0; i < count; ++i) {
      work.bundles.extend(static_cast<ItemId>(work.items.size()));
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

inline Drawn random_bundles(std::uint64_t seed) {
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

// Prompts of sequences of these lengths on two ranks: a nanosecond a token, and nothing else.
inline Drawn plain_bundles(const std::vector<std::vector<Tokens>>& prompts) {
  Drawn drawn;
  drawn.cost.linear_ns = 1;
  drawn.topology = {.ranks = 2, .capacity = 100};
  drawn.options.keep_groups = KeepGroups::rank;
  drawn.options = resolved(drawn.options, drawn.topology);
  for (const std::vector<Tokens>& lengths : prompts) {
    drawn.work.bundles.push_back({});
    for (const Tokens length : lengths) {
      const auto item = static_cast<ItemId>(drawn.work.items.size());
      drawn.work.bundles.extend(item);
      drawn.work.items.push_back({SequenceId(item)});
      drawn.work.lengths.push_back(length);
    }
  }
  return drawn;
}

// Prompts of up to `answers` sequences on so many ranks: more than dynamic programming answers for.
inline Drawn random_prompts(std::uint64_t seed, std::int32_t ranks, std::int32_t num_prompts,
                            std::int32_t answers) {
  Random random(seed);
  Drawn drawn = random_bundles(seed);
  drawn.topology.ranks = ranks;
  drawn.options = resolved({.context = "dynamic", .keep_groups = KeepGroups::rank}, drawn.topology);
  drawn.work = random_work(random, num_prompts, answers, drawn.topology.capacity);
  return drawn;
}

// Random bundles that nest, few enough for the best step of all.
inline void for_exact_steps(
    std::uint64_t standard,
    const std::function<void(const Problem& problem, const ExactStep& exact)>& check) {
  for (std::uint64_t seed = 0; seed < num_asked(standard); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem)) continue;
    const auto exact = find_exact_step(problem);
    ASSERT_TRUE(exact);
    check(problem, *exact);
  }
}

}  // namespace isochron
