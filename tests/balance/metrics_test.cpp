#include "isochron/balance/metrics.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "isochron/pack/verl_microbatches.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

std::vector<std::vector<SequenceId>> ranks(const std::vector<std::vector<std::int32_t>>& lists) {
  std::vector<std::vector<SequenceId>> result;
  for (const auto& list : lists) {
    result.emplace_back();
    for (const std::int32_t id : list) result.back().push_back(SequenceId(id));
  }
  return result;
}

const std::vector<Tokens> ld = {8192, 128, 64, 64, 4096, 4096, 2048, 100, 50, 50, 6000, 10};

TEST(LoadSpread, HasTheGoldenNumbers) {
  const auto balanced = ranks({{0, 1, 3, 4, 9, 11}, {2, 5, 6, 7, 8, 10}});
  const LoadSpread golden = {8258, 16640, 8382, 12358, 12540, 12449.0};
  EXPECT_EQ(load_spread(ld, balanced), golden);
  EXPECT_EQ(verl_seqlen_unbalance(ld, balanced), golden);
}

TEST(LoadSpread, IsDefinedWhereTheRanksDoNotDivide) {
  const std::vector<Tokens> five = {5, 4, 3, 2, 1};
  // Ours cuts [5 4 3] [2 1]; verl's cuts [5 4] [3 2] and a rest of [1].
  const LoadSpread ours = load_spread(five, ranks({{0, 3}, {1, 2, 4}}));
  EXPECT_EQ(ours, (LoadSpread{3, 12, 9, 7, 8, 7.5}));
  const LoadSpread theirs = verl_seqlen_unbalance(five, ranks({{0, 3}, {1, 2, 4}}));
  EXPECT_EQ(theirs, (LoadSpread{1, 9, 8, 7, 8, 7.5}));
}

TEST(LoadSpread, IsDefinedForFewerSequencesThanRanks) {
  const std::vector<Tokens> two = {5, 4};
  EXPECT_EQ(load_spread(two, ranks({{0}, {1}, {}})), (LoadSpread{0, 5, 5, 0, 5, 3.0}));
  EXPECT_EQ(load_spread(std::vector<Tokens>{}, ranks({{}, {}})), LoadSpread{});
  try {
    (void)verl_seqlen_unbalance(two, ranks({{0}, {1}, {}}));
    FAIL() << "verl has no answer for fewer values than partitions";
  } catch (const PeerValueError& error) {
    EXPECT_STREQ(error.what(), "range() arg 3 must not be zero");
  }
}

TEST(LoadSpread, NamesWhatItRejects) {
  EXPECT_EQ(message_of([] { (void)load_spread(ld, {}); }),
            "[load_spread] sequences_of_rank is empty, must have a rank");
  EXPECT_EQ(message_of([] { (void)load_spread(ld, ranks({{12}})); }),
            "[load_spread] rank 0 has sequence 12, must be from 0 to 11");
  EXPECT_EQ(message_of([] {
              (void)load_spread(std::vector<Tokens>{1, -1}, ranks({{0, 1}}));
            }),
            "[load_spread] values[1] is -1, must be at least 0");
  EXPECT_EQ(message_of([] {
              (void)load_spread(std::vector<Tokens>{max_total_cost, 1}, ranks({{0, 1}}));
            }),
            "[load_spread] values up to values[1] add up to more than 2^62");
}

TEST(BalanceMetrics, NamesSixNumbersForTokensAndForCost) {
  const std::vector<Tokens> lengths = {1, 2};
  const std::vector<Nanoseconds> costs = {10, 40};
  const auto numbers = named_numbers(balance_metrics(lengths, costs, ranks({{0}, {1}})));
  ASSERT_EQ(numbers.size(), 12u);
  EXPECT_EQ(numbers[0], (std::pair<std::string, double>("global_seqlen/min", 1)));
  EXPECT_EQ(numbers[5], (std::pair<std::string, double>("global_seqlen/mean", 1.5)));
  EXPECT_EQ(numbers[8], (std::pair<std::string, double>("global_cost/minmax_diff", 30)));
  EXPECT_EQ(numbers[10], (std::pair<std::string, double>("global_cost/balanced_max", 40)));
  EXPECT_EQ(message_of([&] { (void)balance_metrics(lengths, {}, ranks({{0}})); }),
            "[balance_metrics] 2 lengths and 0 costs differ");
}

}  // namespace
}  // namespace isochron
