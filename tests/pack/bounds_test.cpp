#include "isochron/pack/bounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/oracle/best_packing.h"
#include "tests/support/message_of.h"
#include "tests/support/random_batch.h"

namespace isochron {
namespace {

using Lengths = std::vector<Tokens>;

TEST(PackBounds, AreKnownByHand) {
  EXPECT_EQ(volume_bound(Lengths{}, 10), 0);
  EXPECT_EQ(count_bound(Lengths{}, 10), 0);
  EXPECT_EQ(volume_bound(Lengths{5, 5}, 10), 1);
  EXPECT_EQ(volume_bound(Lengths{5, 5, 1}, 10), 2);
  const Lengths above_half(3, 6);  // no two share, though they fill two micro-batches
  EXPECT_EQ(volume_bound(above_half, 10), 2);
  EXPECT_EQ(l2_bound(above_half, 10), 3);
  const Lengths two_each(5, 4);  // 2 + 2 + 1
  EXPECT_EQ(volume_bound(two_each, 10), 2);
  EXPECT_EQ(dual_feasible_bound(two_each, 10), 3);
  EXPECT_EQ(count_bound(two_each, 10), 3);
}

TEST(PackBounds, CountALongSequenceAsOne) {
  for (const auto bound : {volume_bound, l2_bound, dual_feasible_bound, count_bound}) {
    EXPECT_EQ(bound(Lengths{1000, 5, 11, 5}, 10), 3);
  }
}

TEST(PackBounds, HoldTheLargestNumbers) {
  const Lengths lengths(7, max_length);
  for (const auto bound : {volume_bound, l2_bound, dual_feasible_bound, count_bound}) {
    EXPECT_EQ(bound(lengths, max_length), 7);
    EXPECT_EQ(bound(lengths, 1), 7);
  }
  EXPECT_EQ(count_bound(lengths, std::numeric_limits<Tokens>::max()), 1);
}

TEST(PackBounds, NameWhatTheyReject) {
  for (const auto bound : {volume_bound, l2_bound, dual_feasible_bound, count_bound}) {
    EXPECT_EQ(message_of([&] { (void)bound(Lengths{1}, 0); }),
              "[bound] capacity is 0, must be at least 1");
    EXPECT_EQ(message_of([&] {
                (void)bound(Lengths{1, 0}, 5);
              }),
              "[bound] lengths[1] is 0, must be at least 1");
  }
}

TEST(PackBounds, AreNeverAboveTheOptimum) {
  int num_met = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const Tokens capacity = random.between(1, 60);
    Lengths lengths = random_lengths(random, random.below(9), capacity + 2);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", capacity " << capacity << ", lengths "
                                    << testing::PrintToString(lengths));
    const std::vector<Nanoseconds> costs(lengths.size(), 0);
    const auto best = oracle::best_packing({.lengths = lengths, .costs = costs, .groups = {}},
                                           {.capacity = capacity, .oversize = Oversize::alone});
    ASSERT_TRUE(best);
    for (const auto bound : {volume_bound, l2_bound, dual_feasible_bound, count_bound}) {
      ASSERT_LE(bound(lengths, capacity), best->score.count);
      ASSERT_LE(bound(lengths, capacity), count_bound(lengths, capacity));
    }
    num_met += count_bound(lengths, capacity) == best->score.count ? 1 : 0;
  }
  EXPECT_GT(num_met, 2800);  // a bound that is hardly ever met proves nothing
}

}  // namespace
}  // namespace isochron
