#include "isochron/balance/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "isochron/core/random.h"
#include "tests/oracle/partitions.h"
#include "tests/support/random_batch.h"

namespace isochron {
namespace {

// A few units, some bins, and limits from none to hopeless.
struct Instance {
  std::vector<Nanoseconds> costs;
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sizes;
  std::int32_t num_bins = 1;
  Limits limits;

  [[nodiscard]] Units units() const { return {costs, tokens, sizes}; }
};

std::ostream& operator<<(std::ostream& out, const Instance& instance) {
  for (std::size_t i = 0; i < instance.costs.size(); ++i) {
    out << "(" << instance.costs[i];
    if (!instance.tokens.empty()) out << ", " << instance.tokens[i] << " tokens";
    if (!instance.sizes.empty()) out << ", size " << instance.sizes[i];
    out << ") ";
  }
  const Limits& limits = instance.limits;
  return out << "into " << instance.num_bins << ", capacity " << limits.capacity << ", max_size "
             << limits.max_size << ", units " << limits.min_units << " to " << limits.max_units;
}

Instance random_instance(std::uint64_t seed, std::size_t max_count) {
  Random random(seed);
  Instance instance;
  const std::size_t count = random.below(max_count + 1);
  const Tokens longest = random.below(2) == 0 ? 10 : 1000;
  const std::vector<Tokens> lengths = random_lengths(random, count, longest);
  instance.costs = random_costs(random, lengths);
  instance.num_bins = static_cast<std::int32_t>(random.between(1, 6));
  if (random.below(2) == 0) {
    instance.tokens = lengths;
    instance.limits.capacity = random.between(1, 3 * longest);
  }
  if (random.below(3) == 0) {
    for (std::size_t i = 0; i < count; ++i) {
      instance.sizes.push_back(static_cast<std::int32_t>(random.between(1, 3)));
    }
    instance.limits.max_size = random.between(1, 8);
  }
  if (random.below(2) == 0) {
    instance.limits.min_units = static_cast<std::int32_t>(count) / instance.num_bins;
    instance.limits.max_units = instance.limits.min_units + 1;
  }
  return instance;
}

// The smallest largest cost of all assignments that keep the limits; nothing if none does.
std::optional<Nanoseconds> best_cost(const Instance& instance) {
  struct Bin {
    Nanoseconds cost = 0;
    Tokens tokens = 0;
    std::int64_t size = 0;
    std::int32_t num_units = 0;
  };
  const Limits& limits = instance.limits;
  const auto num_bins = static_cast<std::size_t>(instance.num_bins);
  std::optional<Nanoseconds> best;
  oracle::for_each_partition(
      instance.costs.size(), num_bins, [&](const std::vector<std::size_t>& bin_of, std::size_t) {
        std::vector<Bin> bins(num_bins);
        for (std::size_t i = 0; i < bin_of.size(); ++i) {
          Bin& bin = bins[bin_of[i]];
          bin.cost += instance.costs[i];
          bin.tokens += instance.tokens.empty() ? 0 : instance.tokens[i];
          bin.size += instance.sizes.empty() ? 1 : instance.sizes[i];
          bin.num_units += 1;
        }
        Nanoseconds largest = 0;
        for (const Bin& bin : bins) {
          if (bin.tokens > limits.capacity || bin.size > limits.max_size ||
              bin.num_units < limits.min_units || bin.num_units > limits.max_units) {
            return;
          }
          largest = std::max(largest, bin.cost);
        }
        if (!best || largest < *best) best = largest;
      });
  return best;
}

TEST(DearestFirst, SortsByCostThenIndex) {
  const std::vector<Nanoseconds> costs = {3, 9, 3, 0, max_total_cost, 9};
  const DearestFirst order = dearest_first(costs);
  EXPECT_EQ(order.units, (std::vector<std::int32_t>{4, 1, 5, 0, 2, 3}));
  EXPECT_EQ(order.costs, (std::vector<Nanoseconds>{max_total_cost, 9, 9, 3, 3, 0}));
  EXPECT_TRUE(dearest_first({}).units.empty());
}

TEST(CostBound, KnowsMeanLargestSharedAndNeeded) {
  const auto bound = [](const std::vector<Nanoseconds>& costs, std::int32_t num_bins,
                        std::int32_t min_units) {
    return cost_bound(dearest_first(costs), num_bins, min_units);
  };
  EXPECT_EQ(bound({}, 3, 0), 0);
  EXPECT_EQ(bound({4, 4, 3}, 2, 0), 7);         // two of three share a bin
  EXPECT_EQ(bound({1, 1, 1, 1, 1}, 2, 0), 3);   // 5/2, rounded up
  EXPECT_EQ(bound({9, 1, 1}, 2, 0), 9);         // the largest
  EXPECT_EQ(bound({9, 1, 1, 1}, 2, 2), 10);     // and one that its bin needs
  EXPECT_EQ(bound({5, 5, 5, 5, 5}, 2, 0), 15);  // three of five
  EXPECT_EQ(bound({max_total_cost}, 7, 0), max_total_cost);
}

TEST(CostBound, IsNeverAboveTheOptimum) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Instance instance = random_instance(seed, 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const std::optional<Nanoseconds> best = best_cost(instance);
    if (!best) continue;
    ASSERT_LE(
        cost_bound(dearest_first(instance.costs), instance.num_bins, instance.limits.min_units),
        *best);
  }
}

TEST(CrowdingBound, KnowsWhatTheOtherBinsCannotHold) {
  const auto bound = [](const std::vector<Nanoseconds>& costs, const std::vector<Tokens>& tokens,
                        std::int32_t num_bins, Tokens capacity) {
    return crowding_bound({.costs = costs, .tokens = tokens}, dearest_first(costs), num_bins,
                          capacity);
  };
  // Two bins of 10 for 18 tokens: the other bin holds 10, so 3 tokens of 1 stay with the dear unit.
  const std::vector<Nanoseconds> costs = {50, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  std::vector<Tokens> tokens(costs.size(), 1);
  tokens[0] = 5;
  EXPECT_EQ(bound(costs, tokens, 2, 10), 53);
  EXPECT_EQ(bound(costs, tokens, 2, 13), 50);                // there is room for all others
  EXPECT_EQ(bound(costs, tokens, 3, Limits::unlimited), 0);  // nothing to say
  // Three bins of 10 for 26 tokens: 6 of them stay with the two dear units, 1 with each alone.
  EXPECT_EQ(bound({50, 50, 1, 1, 1}, {5, 5, 5, 5, 6}, 3, 10), 51);
  EXPECT_EQ(bound({50, 2, 1, 1, 1}, {5, 5, 5, 5, 6}, 3, 10), 51);
  // Two that may share a bin say no more than what they cost together.
  EXPECT_EQ(bound({4, 4, 90, 90}, {1, 1, 9, 9}, 3, 9), 90);
  EXPECT_EQ(bound({20, 6, 6}, {10, 2, 2}, 1, 14), 32);  // the dear unit counts once
  EXPECT_EQ(bound({}, {}, 3, 10), 0);
}

// Full bins, and costs that grow faster than tokens, as those of sequences do, or any that do not.
Instance crowded_instance(std::uint64_t seed) {
  Random random(seed);
  Instance instance;
  const std::size_t count = 4 + random.below(5);
  Tokens total = 0;
  Tokens longest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tokens tokens = random.between(1, random.below(3) == 0 ? 12 : 4);
    instance.tokens.push_back(tokens);
    instance.costs.push_back(seed % 2 == 0 ? tokens * tokens + random.between(0, 3)
                                           : tokens * random.between(0, 9));
    total += tokens;
    longest = std::max(longest, tokens);
  }
  instance.num_bins = static_cast<std::int32_t>(random.between(2, 4));
  const Tokens mean = (total + instance.num_bins - 1) / instance.num_bins;
  instance.limits.capacity = std::max(longest, mean + random.between(0, 2));
  return instance;
}

TEST(CrowdingBound, IsNeverAboveTheOptimum) {
  int num_useful = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const Instance instance = crowded_instance(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const std::optional<Nanoseconds> best = best_cost(instance);
    if (!best) continue;
    const DearestFirst order = dearest_first(instance.costs);
    const Nanoseconds bound =
        crowding_bound(instance.units(), order, instance.num_bins, instance.limits.capacity);
    ASSERT_LE(bound, *best);
    num_useful += bound > cost_bound(order, instance.num_bins, 0) ? 1 : 0;
  }
  EXPECT_GT(num_useful, 100) << "the instances do not test the bound";
}

TEST(LongestFirst, KeepsTheLimits) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Instance instance = random_instance(seed, 40);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const auto bin_of = longest_first(instance.units(), dearest_first(instance.costs),
                                      instance.num_bins, instance.limits);
    if (bin_of) {
      ASSERT_TRUE(are_kept(instance.limits, instance.units(), instance.num_bins, *bin_of));
    }
  }
}

TEST(LongestFirst, AlwaysEndsWithoutAVolume) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Instance instance = random_instance(seed, 40);
    instance.limits.capacity = Limits::unlimited;
    instance.limits.max_size = Limits::unlimited;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    ASSERT_TRUE(longest_first(instance.units(), dearest_first(instance.costs), instance.num_bins,
                              instance.limits));
  }
}

TEST(SearchAll, AgreesWithTheOracle) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Instance instance = random_instance(seed, 8);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const Units units = instance.units();
    std::int64_t work = 10'000'000;
    std::optional<BinOf> found;
    ASSERT_EQ(search_all(units, dearest_first(instance.costs), instance.num_bins, instance.limits,
                         0, work, found),
              SearchEnd::complete);
    const std::optional<Nanoseconds> best = best_cost(instance);
    ASSERT_EQ(found.has_value(), best.has_value());
    if (!best) continue;
    ASSERT_TRUE(are_kept(instance.limits, units, instance.num_bins, *found));
    ASSERT_EQ(largest_cost(units, instance.num_bins, *found), *best);
  }
}

TEST(SearchAll, ImprovesAStartAndStopsAtTheTarget) {
  const std::vector<Nanoseconds> costs = {5, 5, 4, 3, 3};
  const Units units{.costs = costs};
  const DearestFirst order = dearest_first(costs);
  std::optional<BinOf> best = BinOf{0, 0, 0, 0, 0};
  std::int64_t work = 1'000'000;
  EXPECT_EQ(search_all(units, order, 2, {}, 20, work, best), SearchEnd::complete);
  EXPECT_EQ(work, 999'999);  // 20 is met at once
  EXPECT_EQ(search_all(units, order, 2, {}, 10, work, best), SearchEnd::complete);
  EXPECT_EQ(largest_cost(units, 2, *best), 10);
  work = 3;
  best.reset();
  EXPECT_EQ(search_all(units, order, 2, {}, 0, work, best), SearchEnd::out_of_work);
  EXPECT_FALSE(best);
}

TEST(Refine, NeverRaisesTheLargestCostNorBreaksALimit) {
  int num_improved = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const Instance instance = random_instance(seed, seed % 2 == 0 ? 12 : 120);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const Units units = instance.units();
    const DearestFirst order = dearest_first(instance.costs);
    std::optional<BinOf> start;
    if (seed % 3 == 0) {
      start = longest_first(units, order, instance.num_bins, instance.limits);
    } else {  // any assignment that is allowed, here the first; much is left to improve
      std::int64_t work = 10'000;
      (void)search_all(units, order, instance.num_bins, instance.limits, max_total_cost, work,
                       start);
    }
    if (!start) continue;
    const Nanoseconds before = largest_cost(units, instance.num_bins, *start);
    const Nanoseconds target = cost_bound(order, instance.num_bins, instance.limits.min_units);
    Random random(seed);
    const auto goal = random.below(2) == 0 ? RefineGoal::largest : RefineGoal::spread;
    std::int64_t work = random.between(0, 3000);
    BinOf bin_of = *start;
    const Nanoseconds after =
        refine(units, order, instance.num_bins, instance.limits, goal, target, work, bin_of);
    ASSERT_LE(after, before);
    ASSERT_GE(after, target);
    ASSERT_EQ(after, largest_cost(units, instance.num_bins, bin_of));
    ASSERT_TRUE(are_kept(instance.limits, units, instance.num_bins, bin_of));
    num_improved += after < before ? 1 : 0;
  }
  EXPECT_GT(num_improved, 1000);
}

TEST(Refine, ExchangesOneForOneAndPairsForPairs) {
  // 9 against 3 moves 6 of a gap of 12: both bins cost 15.
  const std::vector<Nanoseconds> costs = {9, 12, 3, 6};
  BinOf bin_of = {0, 0, 1, 1};
  std::int64_t work = 1000;
  EXPECT_EQ(
      refine({.costs = costs}, dearest_first(costs), 2, {}, RefineGoal::largest, 15, work, bin_of),
      15);
  // Only 10+10 against 9+9 moves 2 of a gap of 4.
  const std::vector<Nanoseconds> pairs = {10, 10, 20, 9, 9, 18};
  bin_of = {0, 0, 0, 1, 1, 1};
  work = 1000;
  EXPECT_EQ(
      refine({.costs = pairs}, dearest_first(pairs), 2, {}, RefineGoal::largest, 38, work, bin_of),
      38);
}

TEST(Refine, SpreadsTheOthersToo) {
  const std::vector<Nanoseconds> costs = {20, 3, 3, 3, 3};
  const BinOf lopsided = {0, 1, 1, 1, 1};
  std::int64_t work = 1000;
  BinOf bin_of = lopsided;
  EXPECT_EQ(
      refine({.costs = costs}, dearest_first(costs), 3, {}, RefineGoal::largest, 20, work, bin_of),
      20);
  EXPECT_EQ(bin_of, lopsided);
  EXPECT_EQ(
      refine({.costs = costs}, dearest_first(costs), 3, {}, RefineGoal::spread, 20, work, bin_of),
      20);
  EXPECT_EQ(std::count(bin_of.begin(), bin_of.end(), 1), 2);
  EXPECT_EQ(std::count(bin_of.begin(), bin_of.end(), 2), 2);
}

// More units than search_all() looks at.
TEST(Assign, ProvesThatTheBinsAreTooFewOrTooMany) {
  const std::vector<Nanoseconds> costs(100, 7);
  const std::vector<Tokens> tokens(100, 3);
  const auto assigned = [&](std::int32_t num_bins, const Limits& limits) {
    return assign({.costs = costs, .tokens = tokens}, num_bins, limits, RefineGoal::largest, {});
  };
  for (const Limits& limits :
       {Limits{.capacity = 30}, Limits{.max_size = 10}, Limits{.max_units = 10}}) {
    const Assignment found = assigned(9, limits);
    EXPECT_FALSE(found.bin_of);
    EXPECT_TRUE(found.is_proved);
    EXPECT_TRUE(assigned(10, limits).bin_of);
  }
  const Assignment found = assigned(51, {.min_units = 2});
  EXPECT_FALSE(found.bin_of);
  EXPECT_TRUE(found.is_proved);
  EXPECT_TRUE(assigned(50, {.min_units = 2}).bin_of);
}

TEST(Assign, IsOptimalForAHandfulOfUnits) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Instance instance = random_instance(seed, 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << instance);
    const std::optional<Nanoseconds> best = best_cost(instance);
    const Assignment found = assign(instance.units(), instance.num_bins, instance.limits,
                                    seed % 2 == 0 ? RefineGoal::largest : RefineGoal::spread, {});
    ASSERT_TRUE(found.is_proved);
    ASSERT_EQ(found.bin_of.has_value(), best.has_value());
    if (!best) continue;
    ASSERT_EQ(found.max_cost, *best);
    ASSERT_EQ(found.lower_bound, *best);
    ASSERT_EQ(largest_cost(instance.units(), instance.num_bins, *found.bin_of), *best);
    ASSERT_TRUE(are_kept(instance.limits, instance.units(), instance.num_bins, *found.bin_of));
  }
}

}  // namespace
}  // namespace isochron
