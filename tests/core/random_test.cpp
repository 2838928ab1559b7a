#include "isochron/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "isochron/core/batch.h"

namespace isochron {
namespace {

TEST(Random, FollowsTheReferenceSequenceOfSplitMix64) {
  Random random(1234567);  // the vector that the authors publish
  EXPECT_EQ(random.next(), 6457827717110365317ull);
  EXPECT_EQ(random.next(), 3203168211198807973ull);
  EXPECT_EQ(random.next(), 9817491932198370423ull);
}

TEST(Random, BelowReachesEveryValueAboutEquallyOften) {
  Random random(7);
  std::array<int, 6> hits{};
  for (int i = 0; i < 60000; ++i) ++hits[random.below(6)];
  for (const int hit : hits) EXPECT_NEAR(hit, 10000, 500);
}

TEST(Random, BetweenCoversTheWholeRange) {
  Random random(8);
  constexpr auto low = std::numeric_limits<std::int64_t>::min();
  constexpr auto high = std::numeric_limits<std::int64_t>::max();
  bool is_negative_seen = false;
  bool is_positive_seen = false;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t draw = random.between(low, high);
    is_negative_seen |= draw < 0;
    is_positive_seen |= draw > 0;
  }
  EXPECT_TRUE(is_negative_seen && is_positive_seen);
  EXPECT_EQ(random.between(5, 5), 5);
}

TEST(Random, ShuffleIsAPermutationFixedBySeed) {
  std::vector<int> first(50);
  std::iota(first.begin(), first.end(), 0);
  std::vector<int> second = first;
  const std::vector<int> sorted = first;
  Random(3).shuffle(first);
  Random(3).shuffle(second);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, sorted);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, sorted);
}

TEST(LongTailedLengths, HaveTheTailTheyPromise) {
  std::vector<Tokens> lengths = long_tailed_lengths(100000, 1);
  EXPECT_EQ(lengths, long_tailed_lengths(100000, 1));
  EXPECT_NE(lengths, long_tailed_lengths(100000, 2));
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths[50000]), 600.0, 40.0);
  EXPECT_NEAR(static_cast<double>(lengths[99000]), 16000.0, 800.0);
  EXPECT_GT(lengths[99950], 60000);
  EXPECT_TRUE(long_tailed_lengths(0, 1).empty());
}

}  // namespace
}  // namespace isochron
