#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "tests/plan/drawn_bundles.h"
#include "tests/support/num_instances.h"

namespace isochron {

// All that a block of a level can have of groups wider than it within a time.
struct WideContents {
  struct Content {
    double worth = 0;  // the block's share of the prices
    Nanoseconds taken = 0;
  };
  std::int32_t level = 0;
  std::vector<double> prices;  // of the bundles
  Nanoseconds latest = 0;
  Nanoseconds time = 0;  // at most `latest`
  std::vector<Content> contents;
  double dearest = 0;  // of them, 0 if there is none
};

// Of all ways to put the bundles there, or to leave them out.
inline void list_contents(const BundleTable& table, WideContents& wide) {
  const std::int32_t num_wide = table.num_levels() - 1 - wide.level;
  std::int64_t num_ways = 1;
  for (BundleId b = 0; b < table.num_bundles(); ++b) num_ways *= num_wide + 1;
  for (std::int64_t way = 1; way < num_ways; ++way) {
    std::vector<BlockUse> uses(static_cast<std::size_t>(table.num_levels()));
    WideContents::Content content;
    bool fits = true;
    std::int64_t digits = way;
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle, digits /= num_wide + 1) {
      const auto level = wide.level + static_cast<std::int32_t>(digits % (num_wide + 1));
      if (level == wide.level) continue;
      fits = fits && table.fits(level, bundle);
      BlockUse& use = uses[static_cast<std::size_t>(level)];
      use.cost += table.use(level, bundle).cost;
      use.tokens += table.use(level, bundle).tokens;
      use.sequences += table.use(level, bundle).sequences;
      content.worth += wide.prices[static_cast<std::size_t>(bundle)] * table.size(wide.level) /
                       table.size(level);
    }
    for (std::int32_t level = wide.level + 1; level < table.num_levels(); ++level) {
      content.taken += table.time(level, uses[static_cast<std::size_t>(level)]);
    }
    if (!fits || content.taken > wide.time) continue;
    wide.contents.push_back(content);
    wide.dearest = std::max(wide.dearest, content.worth);
  }
}

// For few bundles of random questions.
inline void for_wide_contents(
    std::uint64_t standard,
    const std::function<void(const BundleTable& table, const WideContents& wide)>& check) {
  for (std::uint64_t seed = 0; seed < num_asked(standard); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Drawn drawn = random_bundles(seed);
    const Problem problem(drawn.work, drawn.topology, drawn.cost, drawn.options);
    if (!has_nested_bundles(problem) || problem.num_bundles() > 4) continue;
    const BundleTable table(problem);
    Random random(seed);
    WideContents wide;
    wide.level = static_cast<std::int32_t>(random.below(2));
    if (wide.level + 1 >= table.num_levels()) continue;
    for (BundleId b = 0; b < table.num_bundles(); ++b) wide.prices.push_back(random.unit());
    wide.latest = table.time(table.num_levels() - 1, 0) * random.between(1, 4);
    wide.time = random.between(wide.latest / 4, wide.latest);
    list_contents(table, wide);
    check(table, wide);
  }
}

}  // namespace isochron
