#include "isochron/balance/tournament.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "isochron/core/random.h"

namespace isochron {
namespace {

TEST(Tournament, FindsTheSmallestKeyOfTheLowestBin) {
  Tournament tournament(std::vector<Nanoseconds>{3, -1, -1});
  EXPECT_EQ(tournament.bin(), 1);
  EXPECT_EQ(tournament.key(), -1);
  tournament.set(1, 3);
  EXPECT_EQ(tournament.bin(), 2);
  tournament.set(2, 3);
  EXPECT_EQ(tournament.bin(), 0);
}

TEST(Tournament, IsEmptyOnceAllAreOut) {
  Tournament tournament(std::vector<Nanoseconds>{0});
  EXPECT_FALSE(tournament.is_empty());
  tournament.set(0, Tournament::out);
  EXPECT_TRUE(tournament.is_empty());
  tournament.set(0, 5);
  EXPECT_EQ(tournament.key(), 5);
}

TEST(Tournament, AgreesWithALinearSearch) {
  Random random(1);
  for (std::size_t num_bins = 1; num_bins < 40; ++num_bins) {
    std::vector<Nanoseconds> keys(num_bins);
    for (Nanoseconds& key : keys) key = static_cast<Nanoseconds>(random.below(9)) - 4;
    Tournament tournament(keys);
    for (int i = 0; i < 200; ++i) {
      const auto least = std::min_element(keys.begin(), keys.end());
      ASSERT_EQ(tournament.key(), *least) << num_bins;
      if (!tournament.is_empty()) {
        ASSERT_EQ(tournament.bin(), least - keys.begin()) << num_bins;
      }
      const std::size_t bin = random.below(num_bins);
      keys[bin] =
          random.below(8) == 0 ? Tournament::out : static_cast<Nanoseconds>(random.below(9)) - 4;
      tournament.set(static_cast<std::int32_t>(bin), keys[bin]);
    }
  }
}

}  // namespace
}  // namespace isochron
