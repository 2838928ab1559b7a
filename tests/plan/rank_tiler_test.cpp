// All ranks for groups of several sizes: by hand, and beside every choice of sizes.

#include "isochron/plan/slots/rank_tiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "isochron/core/random.h"
#include "tests/plan/equal_counts.h"

namespace isochron {
namespace {

std::vector<TimesBySize> loads_of(const Problem& problem, const RankTiler& tiler) {
  std::vector<TimesBySize> loads;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    loads.push_back(tiler.times_of(std::vector<ItemId>{item}));
  }
  return loads;
}

Nanoseconds time_of(const Problem& problem, const std::vector<TimesBySize>& loads,
                    const std::vector<RankRange>& ranges) {
  Nanoseconds longest = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto sizes = problem.sizes();
    const auto place = std::lower_bound(sizes.begin(), sizes.end(), ranges[i].size);
    longest = std::max(longest, loads[i][static_cast<std::size_t>(place - sizes.begin())]);
  }
  return longest;
}

// The least time over all sizes that add up, if any do.
std::optional<Nanoseconds> least_time(const Problem& problem,
                                      const std::vector<TimesBySize>& loads) {
  std::optional<Nanoseconds> least;
  const std::function<void(std::size_t, std::int32_t, Nanoseconds)> choose =
      [&](std::size_t i, std::int32_t left, Nanoseconds longest) {
        if (i == loads.size()) {
          if (left == 0 && (!least || longest < *least)) least = longest;
          return;
        }
        for (std::size_t p = 0; p < problem.sizes().size(); ++p) {
          const std::int32_t size = problem.sizes()[p];
          if (loads[i][p] < 0 || size > left) continue;
          choose(i + 1, left - size, std::max(longest, loads[i][p]));
        }
      };
  choose(0, problem.num_ranks(), 0);
  return least;
}

TEST(RankTiler, TheSlowestGetsTheMostRanks) {
  const Problem problem = equal_counts("dynamic", {80, 20, 10}, 7);
  const RankTiler tiler(problem);
  const auto ranges = tiler.find(loads_of(problem, tiler));
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].size, 4);
  EXPECT_EQ(ranges[1].size + ranges[2].size, 3);
}

TEST(RankTiler, TwoGroupsDoNotFillSevenAlignedRanks) {
  const Problem problem = equal_counts("dynamic", {80, 20}, 7);
  const RankTiler tiler(problem);
  EXPECT_TRUE(tiler.find(loads_of(problem, tiler)).empty());
}

TEST(RankTiler, MoreLoadsThanRanksDoNotFit) {
  const Problem problem = equal_counts("dynamic:any", {10, 10, 10}, 2);
  const RankTiler tiler(problem);
  EXPECT_TRUE(tiler.find(loads_of(problem, tiler)).empty());
}

TEST(RankTiler, FillsAllRanksWhereverSomeChoiceOfSizesDoes) {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(1 + random.below(13));
    const auto num_loads = static_cast<std::size_t>(1 + random.below(5));
    std::vector<Tokens> lengths;
    for (std::size_t i = 0; i < num_loads; ++i) {
      lengths.push_back(static_cast<Tokens>(1 + random.below(random.below(2) == 0 ? 50 : 150)));
    }
    const Problem problem = equal_counts(seed % 2 == 0 ? "dynamic" : "dynamic:any", lengths, ranks);
    const RankTiler tiler(problem);
    const auto loads = loads_of(problem, tiler);
    const auto ranges = tiler.find(loads);
    const auto least = least_time(problem, loads);
    if (ranges.empty()) {
      EXPECT_FALSE(least.has_value());
      continue;
    }
    std::vector<bool> is_taken(static_cast<std::size_t>(ranks), false);
    for (const RankRange& range : ranges) {
      EXPECT_GE(problem.price_of(range), 0);
      for (std::int64_t r = range.first; r < range.first + range.size; ++r) {
        EXPECT_FALSE(is_taken[static_cast<std::size_t>(r)]);
        is_taken[static_cast<std::size_t>(r)] = true;
      }
    }
    EXPECT_EQ(std::count(is_taken.begin(), is_taken.end(), false), 0);
    ASSERT_TRUE(least.has_value());
    sum += static_cast<double>(time_of(problem, loads, ranges)) / static_cast<double>(*least);
    ++count;
  }
  EXPECT_LE(sum / count, 1.02);
}

}  // namespace
}  // namespace isochron
