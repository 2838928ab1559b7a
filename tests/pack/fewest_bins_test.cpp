#include "isochron/pack/fewest_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <vector>

#include "isochron/pack/first_fit.h"
#include "isochron/pack/repack.h"
#include "tests/oracle/partitions.h"
#include "tests/support/random_batch.h"

namespace isochron {
namespace {

// Units that fit a bin each, some of several sequences.
struct Instance {
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sizes;
  Tokens capacity = 1;
  std::int64_t max_size = Limits::unlimited;

  [[nodiscard]] Units units() const { return {tokens, tokens, sizes}; }
  [[nodiscard]] Limits limits() const {
    return {.capacity = capacity, .max_size = max_size, .min_units = 1};
  }
};

std::ostream& operator<<(std::ostream& out, const Instance& instance) {
  out << "capacity " << instance.capacity << ", max_size " << instance.max_size << ":";
  for (std::size_t i = 0; i < instance.tokens.size(); ++i) {
    out << " " << instance.tokens[i];
    if (!instance.sizes.empty()) out << " (" << instance.sizes[i] << ")";
  }
  return out;
}

Instance random_instance(std::uint64_t seed, std::size_t max_count) {
  Random random(seed);
  Instance instance;
  const Tokens longest = random.below(2) == 0 ? 12 : 5000;
  instance.tokens = random_lengths(random, random.below(max_count + 1), longest);
  instance.capacity = random.between(longest, 3 * longest);
  if (random.below(2) == 0) {
    instance.max_size = random.between(3, 8);
    for (std::size_t i = 0; i < instance.tokens.size(); ++i) {
      instance.sizes.push_back(static_cast<std::int32_t>(random.between(1, 3)));
    }
  }
  return instance;
}

// Word for word, and slow.
BinOf plain_first_fit(const Instance& instance) {
  std::vector<std::size_t> order(instance.tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return instance.tokens[a] > instance.tokens[b];
  });
  BinOf bin_of(order.size());
  std::vector<std::pair<Tokens, std::int64_t>> rooms;
  for (const std::size_t unit : order) {
    const std::int64_t size = instance.sizes.empty() ? 1 : instance.sizes[unit];
    std::size_t bin = 0;
    while (bin < rooms.size() &&
           (rooms[bin].first < instance.tokens[unit] || rooms[bin].second < size)) {
      ++bin;
    }
    if (bin == rooms.size()) rooms.emplace_back(instance.capacity, instance.max_size);
    rooms[bin].first -= instance.tokens[unit];
    rooms[bin].second -= size;
    bin_of[unit] = static_cast<std::int32_t>(bin);
  }
  return bin_of;
}

std::int32_t fewest_by_search(const Instance& instance) {
  auto best = static_cast<std::int32_t>(instance.tokens.size());
  oracle::for_each_partition(
      instance.tokens.size(), instance.tokens.size(),
      [&](const std::vector<std::size_t>& bin_of, std::size_t num_bins) {
        if (static_cast<std::int32_t>(num_bins) >= best) return;
        std::vector<Tokens> tokens(num_bins, 0);
        std::vector<std::int64_t> sizes(num_bins, 0);
        for (std::size_t i = 0; i < bin_of.size(); ++i) {
          tokens[bin_of[i]] += instance.tokens[i];
          sizes[bin_of[i]] += instance.sizes.empty() ? 1 : instance.sizes[i];
        }
        for (std::size_t bin = 0; bin < num_bins; ++bin) {
          if (tokens[bin] > instance.capacity || sizes[bin] > instance.max_size) return;
        }
        best = static_cast<std::int32_t>(num_bins);
      });
  return best;
}

TEST(FirstFit, EqualsTheLiteralRule) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Instance instance = random_instance(seed, 90);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << instance);
    const FirstFit found =
        first_fit_decreasing(instance.units(), instance.capacity, instance.max_size);
    const BinOf expected = plain_first_fit(instance);
    ASSERT_EQ(found.bin_of, expected);
    ASSERT_EQ(found.num_bins,
              expected.empty() ? 0 : *std::max_element(expected.begin(), expected.end()) + 1);
  }
}

TEST(Repack, NeverTakesMoreBinsNorBreaksALimit) {
  int num_improved = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Instance instance = random_instance(seed, 60);
    if (instance.tokens.empty()) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << instance);
    // Next fit, which leaves much to improve.
    BinOf bin_of;
    std::int32_t num_bins = 0;
    Tokens room = 0;
    std::int64_t places = 0;
    for (std::size_t i = 0; i < instance.tokens.size(); ++i) {
      const std::int64_t size = instance.sizes.empty() ? 1 : instance.sizes[i];
      if (num_bins == 0 || room < instance.tokens[i] || places < size) {
        ++num_bins;
        room = instance.capacity;
        places = instance.max_size;
      }
      room -= instance.tokens[i];
      places -= size;
      bin_of.push_back(num_bins - 1);
    }
    const std::int64_t work = Random(seed).between(0, 20'000);
    const std::int32_t after = repack(instance.units(), instance.capacity, instance.max_size,
                                      num_bins, 1, {.work = work, .patience = work}, bin_of);
    ASSERT_LE(after, num_bins);
    ASSERT_TRUE(are_kept(instance.limits(), instance.units(), after, bin_of));
    num_improved += after < num_bins ? 1 : 0;
  }
  EXPECT_GT(num_improved, 500);
}

TEST(FewestBins, AreTheFewestOfAHandfulOfUnits) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const Instance instance = random_instance(seed, 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << instance);
    const FewestBins found = fewest_bins(instance.units(), instance.capacity, instance.max_size,
                                         [](std::int32_t bound) { return bound; }, {});
    const std::int32_t best = fewest_by_search(instance);
    ASSERT_EQ(found.num_bins, best);
    ASSERT_EQ(found.lower_bound, best);
    if (best > 0) {
      ASSERT_TRUE(are_kept(instance.limits(), instance.units(), best, found.bin_of));
    }
  }
}

TEST(FewestBins, AreSoundWithAnyAmountOfWork) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const Instance instance = random_instance(seed, 9);
    if (instance.tokens.empty()) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << instance);
    Random random(seed);
    const auto spare = static_cast<std::int32_t>(random.below(3));
    const FewestBins found = fewest_bins(
        instance.units(), instance.capacity, instance.max_size,
        [&](std::int32_t bound) { return bound + spare; }, random.between(0, 200));
    const std::int32_t best = fewest_by_search(instance);
    ASSERT_GE(found.num_bins, best);
    ASSERT_LE(found.lower_bound, best);
    ASSERT_TRUE(are_kept(instance.limits(), instance.units(), found.num_bins, found.bin_of));
  }
}

}  // namespace
}  // namespace isochron
