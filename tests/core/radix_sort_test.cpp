#include "isochron/core/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/core/random.h"

namespace isochron {
namespace {

using Keys = std::vector<std::uint64_t>;
using Positions = std::vector<std::int32_t>;

Positions stable_positions(const Keys& keys) {
  Positions positions(keys.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
  return positions;
}

TEST(RadixSort, KeepsEqualKeysInOrder) {
  EXPECT_EQ(ascending_positions(Keys{}), Positions{});
  EXPECT_EQ(ascending_positions(Keys{7}), Positions{0});
  EXPECT_EQ(ascending_positions(Keys{5, 3, 5, 3, 9}), (Positions{1, 3, 0, 2, 4}));
  EXPECT_EQ(ascending_positions(Keys(5, 42)), (Positions{0, 1, 2, 3, 4}));
}

TEST(RadixSort, SortsByEveryBit) {
  Keys keys = {~std::uint64_t{0}, 0};
  for (int bit = 63; bit >= 0; --bit) keys.push_back(std::uint64_t{1} << bit);
  EXPECT_EQ(ascending_positions(keys), stable_positions(keys));
}

TEST(RadixSort, EqualsAStableSort) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    // Around 1024 the width of a digit changes.
    const std::uint64_t count = seed % 4 == 0 ? 1020 + random.below(8) : random.below(3000);
    const std::uint64_t bits = 1 + random.below(64);
    const std::uint64_t common = random.next() << (bits - 1) << 1;  // in bits that no key differs
    Keys keys;
    for (std::uint64_t i = 0; i < count; ++i)
      keys.push_back((random.next() >> (64 - bits)) | common);
    ASSERT_EQ(ascending_positions(keys), stable_positions(keys));
  }
}

}  // namespace
}  // namespace isochron
