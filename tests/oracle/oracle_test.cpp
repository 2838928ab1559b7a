#include <gtest/gtest.h>

#include <vector>

#include "tests/oracle/best_balance.h"
#include "tests/oracle/best_packing.h"
#include "tests/oracle/partitions.h"

namespace isochron::oracle {
namespace {

std::int64_t num_partitions(std::size_t count, std::size_t max_sets) {
  std::int64_t visited = 0;
  for_each_partition(count, max_sets, [&](const auto&, std::size_t) { ++visited; });
  return visited;
}

TEST(Oracle, VisitsEveryPartitionOnce) {
  const std::int64_t bell[] = {1, 1, 2, 5, 15, 52, 203, 877, 4140};
  for (std::size_t n = 0; n < 9; ++n) EXPECT_EQ(num_partitions(n, n), bell[n]) << n;
  EXPECT_EQ(num_partitions(4, 2), 8);   // 1 + 7: Stirling numbers of the second kind
  EXPECT_EQ(num_partitions(5, 3), 41);  // 1 + 15 + 25
  EXPECT_EQ(num_partitions(3, 9), 5);
}

TEST(Oracle, FindsTheBestBalanceByHand) {
  const std::vector<Nanoseconds> costs = {8, 7, 6, 5, 4};
  const std::vector<Tokens> lengths = {1, 1, 1, 9, 9};
  const std::vector<PromptGroupId> groups = {PromptGroupId(0), PromptGroupId(0), PromptGroupId(1),
                                             PromptGroupId(2), PromptGroupId(2)};
  const Sequences input{lengths, costs, groups};
  EXPECT_EQ(best_balance(input, 3), 11);  // 8, 7+4, 6+5
  EXPECT_EQ(best_balance(input, 2), 15);  // 8+7, 6+5+4
  EXPECT_EQ(best_balance(input, 2, {.minibatch = 2}), 8 + 6 + 4);
  EXPECT_EQ(best_balance(input, 2, {.capacity = 11}), 17);  // 9 tokens apart: 8+5, 7+6+4
  EXPECT_EQ(best_balance(input, 2, {.capacity = 10}), std::nullopt);
  EXPECT_EQ(best_balance(input, 2, {.keep_groups = KeepGroups::rank}), 15);
  EXPECT_EQ(best_balance(input, 5, {.equal_count = true}), 8);
  const std::vector<Nanoseconds> one_dear = {9, 1, 1, 1};
  EXPECT_EQ(best_balance({.costs = one_dear}, 2), 9);
  EXPECT_EQ(best_balance({.costs = one_dear}, 2, {.equal_count = true}), 10);
  EXPECT_EQ(best_balance({}, 2), 0);
}

TEST(Oracle, FindsTheBestPackingByHand) {
  const std::vector<Tokens> lengths = {5, 6, 4, 5, 9};
  const std::vector<Nanoseconds> costs = {1, 2, 3, 4, 5};
  const Sequences input{.lengths = lengths, .costs = costs, .groups = {}};
  const auto score_of = [&](const PackOptions& options) {
    return best_packing(input, options)->score;
  };
  EXPECT_EQ(score_of({.capacity = 10}), (Score{3, 5}));  // 5+5, 6+4, 9
  EXPECT_EQ(score_of({.capacity = 10, .multiple = 2}), (Score{4, 5}));
  EXPECT_EQ(score_of({.capacity = 29}), (Score{1, 15}));
  EXPECT_EQ(score_of({.capacity = 29, .max_sequences = 3}), (Score{2, 8}));
  EXPECT_EQ(score_of({.capacity = 10, .count = 7}), (Score{7, 5}));
  EXPECT_EQ(best_packing(input, {.capacity = 10, .count = 2}), std::nullopt);
  EXPECT_EQ(best_packing(input, {.capacity = 8}), std::nullopt);
  EXPECT_EQ(score_of({.capacity = 8, .oversize = Oversize::alone}).count, 5);
  EXPECT_EQ(best_packing(input, {.capacity = 10, .min_count = 6, .short_ = Short::error}),
            std::nullopt);
  const auto dropped = best_packing(input, {.capacity = 10, .multiple = 4, .short_ = Short::drop});
  EXPECT_EQ(dropped->score, (Score{4, 5}));
  EXPECT_TRUE(dropped->dropped.empty());
  const auto three = best_packing(
      input, {.capacity = 6, .multiple = 4, .oversize = Oversize::alone, .short_ = Short::drop});
  EXPECT_EQ(three->score, (Score{4, 4}));
  EXPECT_EQ(three->dropped, std::vector<SequenceId>{SequenceId(4)});
}

}  // namespace
}  // namespace isochron::oracle
