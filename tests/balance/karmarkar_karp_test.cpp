#include "isochron/balance/karmarkar_karp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/random.h"
#include "tests/support/ids_of.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

template <class T>
Lists raw(const std::vector<T>& values, std::int32_t parts, PartSizes sizes) {
  return ids_of(karmarkar_karp(std::span<const T>(values), parts, sizes));
}

template <class T>
Lists sorted(const std::vector<T>& values, std::int32_t parts, PartSizes sizes) {
  return ids_of(balanced_partitions(std::span<const T>(values), parts, sizes));
}

template <class T = std::int64_t>
std::vector<T> workloads(const std::vector<std::int64_t>& lengths) {
  std::vector<T> result;
  for (const std::int64_t length : lengths) {
    result.push_back(static_cast<T>(24576) * static_cast<T>(length) +
                     static_cast<T>(length) * static_cast<T>(length));
  }
  return result;
}

// The rule word for word: k sets in each state, compared item by item, sorted after every merge.
template <class T>
Lists slow_karmarkar_karp(const std::vector<T>& values, std::size_t parts, PartSizes sizes) {
  struct Set {
    T sum = 0;
    std::vector<std::pair<std::int32_t, T>> items;
    void add(std::pair<std::int32_t, T> item) {
      items.push_back(item);
      sum = static_cast<T>(sum + item.second);
    }
    bool operator>(const Set& other) const {
      if (sum != other.sum) return sum > other.sum;
      if (items.size() != other.items.size()) return items.size() > other.items.size();
      return items > other.items;
    }
  };
  using State = std::vector<Set>;  // descending
  const auto sort_sets = [](State& state) {
    std::stable_sort(state.begin(), state.end(), [](const Set& a, const Set& b) { return a > b; });
  };

  std::vector<std::pair<T, std::int32_t>> ascending;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ascending.emplace_back(values[i], static_cast<std::int32_t>(i));
  }
  std::sort(ascending.begin(), ascending.end());
  const std::size_t per_state = sizes == PartSizes::equal ? parts : 1;
  std::vector<State> states;
  for (std::size_t offset = 0; offset < ascending.size(); offset += per_state) {
    State state(parts);
    for (std::size_t i = 0; i < per_state; ++i) {
      state[i].add({ascending[offset + i].second, ascending[offset + i].first});
    }
    sort_sets(state);
    states.push_back(std::move(state));
  }
  const auto take_next = [&] {
    std::size_t best = 0;
    for (std::size_t i = 1; i < states.size(); ++i) {
      const T spread = static_cast<T>(states[i].front().sum - states[i].back().sum);
      const T best_spread = static_cast<T>(states[best].front().sum - states[best].back().sum);
      if (spread > best_spread ||
          (spread == best_spread && states[i].front() > states[best].front())) {
        best = i;
      }
    }
    State state = std::move(states[best]);
    states.erase(states.begin() + static_cast<std::ptrdiff_t>(best));
    return state;
  };
  while (states.size() > 1) {
    State first = take_next();
    const State second = take_next();
    for (std::size_t i = 0; i < parts; ++i) {
      for (const auto& item : second[parts - 1 - i].items) first[i].add(item);
    }
    sort_sets(first);
    states.push_back(std::move(first));
  }
  Lists result;
  for (const Set& set : states.front()) {
    result.emplace_back();
    for (const auto& [item, value] : set.items) result.back().push_back(item);
  }
  return result;
}

TEST(KarmarkarKarp, JoinsLargestWithSmallest) {
  const std::vector<std::int64_t> five = {8, 7, 6, 5, 4};
  EXPECT_EQ(raw(five, 3, PartSizes::free), (Lists{{4, 1}, {3, 2}, {0}}));
  EXPECT_EQ(sorted(five, 3, PartSizes::free), (Lists{{1, 4}, {2, 3}, {0}}));
  const std::vector<std::int64_t> six = {8, 7, 6, 5, 4, 1};
  EXPECT_EQ(raw(six, 3, PartSizes::equal), (Lists{{4, 1}, {3, 2}, {5, 0}}));
  EXPECT_EQ(sorted(six, 3, PartSizes::equal), (Lists{{1, 4}, {2, 3}, {0, 5}}));
}

TEST(KarmarkarKarp, BreaksTiesByIndex) {
  const std::vector<std::int64_t> six(6, 5);
  EXPECT_EQ(raw(six, 3, PartSizes::free), (Lists{{5, 0}, {4, 1}, {3, 2}}));
  EXPECT_EQ(sorted(six, 3, PartSizes::free), (Lists{{0, 5}, {1, 4}, {2, 3}}));
  const std::vector<std::int64_t> eight(8, 5);
  EXPECT_EQ(sorted(eight, 4, PartSizes::equal), (Lists{{0, 7}, {1, 6}, {2, 5}, {3, 4}}));
}

TEST(KarmarkarKarp, GivesTheGoldenPartitionsOfWorkloads) {
  EXPECT_EQ(sorted(workloads({1000, 200, 300, 400, 500, 600, 700, 800}), 2, PartSizes::equal),
            (Lists{{2, 4, 6, 7}, {0, 1, 3, 5}}));
  EXPECT_EQ(sorted(workloads({6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538,
                              6436, 6814, 2500, 7944}),
                   4, PartSizes::equal),
            (Lists{{6, 7, 9, 12}, {1, 2, 10, 11}, {3, 4, 13, 14}, {0, 5, 8, 15}}));
  EXPECT_EQ(sorted(workloads({8192, 128, 64, 64, 4096, 4096, 2048, 100, 50, 50, 6000, 10}), 2,
                   PartSizes::equal),
            (Lists{{0, 1, 3, 4, 9, 11}, {2, 5, 6, 7, 8, 10}}));
}

TEST(KarmarkarKarp, SumsInTheTypeOfTheValues) {
  const std::vector<std::int64_t> lengths = {3765,  30817, 14350, 9825, 28544, 25697, 7113,  20034,
                                             14106, 13834, 10,    7534, 3612,  532,   32621, 15886};
  const Lists exact = {{2, 3, 5, 7, 10, 11, 12, 14}, {0, 1, 4, 6, 8, 9, 13, 15}};
  EXPECT_EQ(sorted(workloads<std::int64_t>(lengths), 2, PartSizes::equal), exact);
  EXPECT_EQ(sorted(workloads<double>(lengths), 2, PartSizes::equal), exact);
  EXPECT_EQ(sorted(workloads<float>(lengths), 2, PartSizes::equal),
            (Lists{{0, 1, 4, 8, 9, 10, 11, 15}, {2, 3, 5, 6, 7, 12, 13, 14}}));
}

TEST(KarmarkarKarp, HandlesOnePartOneItemAndZeros) {
  EXPECT_EQ(raw<std::int64_t>({7}, 1, PartSizes::free), (Lists{{0}}));
  EXPECT_EQ(raw<std::int64_t>({7}, 1, PartSizes::equal), (Lists{{0}}));
  EXPECT_EQ(sorted<std::int64_t>({3, 1, 2}, 1, PartSizes::free), (Lists{{0, 1, 2}}));
  EXPECT_EQ(raw<std::int64_t>({0, 0, 0}, 3, PartSizes::free), (Lists{{2}, {1}, {0}}));
  EXPECT_EQ(raw<double>({0.0, -0.0, 0.0}, 3, PartSizes::free), (Lists{{2}, {1}, {0}}));
}

TEST(KarmarkarKarp, NamesWhatItRejects) {
  const auto message = [](const auto& values, std::int32_t parts, PartSizes sizes) {
    return message_of([&] { raw(values, parts, sizes); });
  };
  using Integers = std::vector<std::int64_t>;
  EXPECT_EQ(message(Integers{1, 2}, 0, PartSizes::free),
            "[karmarkar_karp] parts is 0, must be at least 1");
  EXPECT_EQ(message(Integers{}, 1, PartSizes::free),
            "[karmarkar_karp] 0 values are fewer than 1 parts");
  EXPECT_EQ(message(Integers{1, 2, 3}, 4, PartSizes::equal),
            "[karmarkar_karp] 3 values are fewer than 4 parts");
  EXPECT_EQ(message(Integers{1, 2, 3}, 2, PartSizes::equal),
            "[karmarkar_karp] 3 values do not divide into 2 parts of equal size");
  EXPECT_EQ(message(Integers{1, -2, 3}, 2, PartSizes::free),
            "[karmarkar_karp] values[1] is -2, must be at least 0");
  const std::int64_t half = std::int64_t{1} << 61;
  EXPECT_EQ(message(Integers{half, half}, 2, PartSizes::free), "accepted");
  EXPECT_EQ(message(Integers{half, half, 1}, 2, PartSizes::free),
            "[karmarkar_karp] values up to values[2] add up to more than 2^62");
  EXPECT_EQ(
      message(std::vector<float>{1, std::numeric_limits<float>::infinity()}, 2, PartSizes::free),
      "[karmarkar_karp] values[1] is inf, must be finite");
  EXPECT_EQ(
      message(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 1, PartSizes::free),
      "[karmarkar_karp] values[0] is nan, must be finite");
  EXPECT_EQ(message(std::vector<float>{3e38f, 1}, 1, PartSizes::free),
            "[karmarkar_karp] values up to values[0] add up to more than half the largest number "
            "of their type");
}

template <class T>
std::vector<T> random_values(Random& random, std::size_t count) {
  // Few distinct values, many, zeros among them, or the workloads that trainers pass.
  static constexpr std::int64_t highest[] = {0, 1, 3, 10, 1000, 1 << 20};
  const std::int64_t high = highest[random.below(6)];
  const bool is_workload = random.below(2) == 0;
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) {
    const T draw = static_cast<T>(random.between(0, high));
    values.push_back(is_workload ? draw * draw + static_cast<T>(24576) * draw : draw);
    if (!is_workload && std::is_floating_point_v<T>) values.back() /= static_cast<T>(7);
  }
  return values;
}

template <class T>
void expect_the_slow_answer(std::uint64_t num_seeds, std::uint64_t max_parts,
                            std::uint64_t max_count) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    Random random(seed);
    const auto parts = 1 + random.below(max_parts);
    const auto sizes = random.below(2) == 0 ? PartSizes::equal : PartSizes::free;
    const auto count = sizes == PartSizes::equal ? parts * (1 + random.below(1 + max_count / parts))
                                                 : parts + random.below(max_count);
    const std::vector<T> values = random_values<T>(random, count);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << count << " values, " << parts
                                    << " parts, " << name_of(sizes));
    ASSERT_EQ(raw(values, static_cast<std::int32_t>(parts), sizes),
              slow_karmarkar_karp(values, parts, sizes));
  }
}

TEST(KarmarkarKarp, EqualsTheLiteralRuleOnIntegers) {
  expect_the_slow_answer<std::int64_t>(4000, 8, 24);
  expect_the_slow_answer<std::int64_t>(60, 64, 400);
}

TEST(KarmarkarKarp, EqualsTheLiteralRuleOnSingles) {
  expect_the_slow_answer<float>(4000, 8, 24);
  expect_the_slow_answer<float>(60, 64, 400);
}

TEST(KarmarkarKarp, EqualsTheLiteralRuleOnDoubles) {
  expect_the_slow_answer<double>(2000, 8, 24);
  expect_the_slow_answer<double>(40, 64, 400);
}

TEST(KarmarkarKarp, DividesAMillionItems) {
  const std::vector<Tokens> lengths = long_tailed_lengths(1 << 20, 5);
  for (const PartSizes sizes : {PartSizes::equal, PartSizes::free}) {
    const auto partitions = balanced_partitions(workloads(lengths), 16384, sizes);
    ASSERT_EQ(partitions.size(), 16384u);
    std::vector<bool> is_seen(lengths.size());
    for (const auto& items : partitions) {
      ASSERT_FALSE(items.empty());
      if (sizes == PartSizes::equal) {
        ASSERT_EQ(items.size(), 64u);
      }
      for (const SequenceId item : items) {
        ASSERT_FALSE(is_seen[item.index()]);
        is_seen[item.index()] = true;
      }
    }
    EXPECT_TRUE(std::all_of(is_seen.begin(), is_seen.end(), [](bool seen) { return seen; }));
  }
}

}  // namespace
}  // namespace isochron
