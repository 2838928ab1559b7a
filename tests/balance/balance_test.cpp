#include "isochron/balance/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "isochron/balance/karmarkar_karp.h"
#include "tests/oracle/best_balance.h"
#include "tests/support/equal_on_threads.h"
#include "tests/support/ids_of.h"
#include "tests/support/message_of.h"
#include "tests/support/random_batch.h"

namespace isochron {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;
using Costs = std::vector<Nanoseconds>;
using Lengths = std::vector<Tokens>;

constexpr Tokens no_limit = std::numeric_limits<Tokens>::max();

std::vector<PromptGroupId> groups_of(const std::vector<std::int32_t>& numbers) {
  std::vector<PromptGroupId> groups;
  for (const std::int32_t number : numbers) groups.emplace_back(number);
  return groups;
}

Nanoseconds cost_of(const std::vector<SequenceId>& ids, std::span<const Nanoseconds> costs) {
  Nanoseconds sum = 0;
  for (const SequenceId id : ids) sum += costs[id.index()];
  return sum;
}

// The sequences of each rank that lie in the mini-batch that begins at row `first`.
std::vector<std::vector<SequenceId>> minibatch_from(const Balance& result, std::size_t first,
                                                    std::size_t rows) {
  std::vector<std::vector<SequenceId>> lists(result.sequences_of_rank.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (const SequenceId id : result.sequences_of_rank[rank]) {
      if (id.index() >= first && id.index() < first + rows) lists[rank].push_back(id);
    }
  }
  return lists;
}

// Small at both ends, word for word: ascending by (cost, id), every second one, the rest backwards.
std::vector<SequenceId> small_at_both_ends(std::vector<SequenceId> ids,
                                           std::span<const Nanoseconds> costs) {
  std::sort(ids.begin(), ids.end(), [&](SequenceId a, SequenceId b) {
    return std::pair(costs[a.index()], a) < std::pair(costs[b.index()], b);
  });
  std::vector<SequenceId> order;
  for (std::size_t i = 0; i < ids.size(); i += 2) order.push_back(ids[i]);
  for (std::size_t i = ids.size(); i-- > 0;) {
    if (i % 2 == 1) order.push_back(ids[i]);
  }
  return order;
}

// Everything that an answer promises, except that it is good.
void expect_kept(const Balance& result, const Sequences& input, std::int32_t ranks,
                 const BalanceOptions& options) {
  const std::size_t n = input.costs.size();
  const std::size_t rows = options.minibatch == 0 ? std::max<std::size_t>(n, 1)
                                                  : static_cast<std::size_t>(options.minibatch);
  ASSERT_EQ(result.sequences_of_rank.size(), static_cast<std::size_t>(ranks));
  std::vector<int> times_seen(n, 0);
  for (const auto& ids : result.sequences_of_rank) {
    for (const SequenceId id : ids) ++times_seen.at(id.index());
  }
  EXPECT_EQ(times_seen, std::vector<int>(n, 1));

  Nanoseconds max_cost = 0;
  std::vector<std::vector<SequenceId>> expected_order(static_cast<std::size_t>(ranks));
  for (std::size_t first = 0; first < n; first += rows) {
    Nanoseconds largest = 0;
    std::size_t fewest = n;
    std::size_t most = 0;
    std::set<PromptGroupId> seen;
    const auto lists = minibatch_from(result, first, rows);
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      auto ids = lists[rank];
      std::sort(ids.begin(), ids.end());
      largest = std::max(largest, cost_of(ids, input.costs));
      Tokens tokens = 0;
      std::set<PromptGroupId> groups;
      for (const SequenceId id : ids) {
        if (!input.lengths.empty()) tokens += input.lengths[id.index()];
        if (!input.groups.empty()) groups.insert(input.groups[id.index()]);
      }
      EXPECT_LE(tokens, options.capacity == 0 ? no_limit : options.capacity);
      const bool are_groups_kept = options.keep_groups == KeepGroups::rank;
      const std::size_t num_units = are_groups_kept ? groups.size() : ids.size();
      fewest = std::min(fewest, num_units);
      most = std::max(most, num_units);
      if (are_groups_kept) {
        for (const PromptGroupId group : groups) EXPECT_TRUE(seen.insert(group).second);
      }
      if (options.order == Order::small_ends) ids = small_at_both_ends(ids, input.costs);
      expected_order[rank].insert(expected_order[rank].end(), ids.begin(), ids.end());
    }
    if (options.equal_count) {
      EXPECT_LE(most - fewest, 1u);
    }
    max_cost += largest;
  }
  EXPECT_EQ(result.sequences_of_rank, expected_order);
  EXPECT_EQ(result.max_cost, max_cost);
  EXPECT_LE(result.lower_bound, result.max_cost);
  EXPECT_EQ(result.status,
            result.lower_bound == result.max_cost ? Status::optimal : Status::feasible);
  const Nanoseconds total = std::accumulate(input.costs.begin(), input.costs.end(), Nanoseconds{0});
  EXPECT_EQ(result.mean_cost, static_cast<double>(total) / ranks);
  EXPECT_EQ(result.reason, "");
}

TEST(Balance, FindsTheBestAssignmentByHand) {
  const Balance result = balance(Costs{8, 7, 6, 5, 4}, 3);
  EXPECT_EQ(result.status, Status::optimal);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.max_cost, 11);
  EXPECT_EQ(result.lower_bound, 11);
  EXPECT_EQ(result.mean_cost, 10.0);
  Lists lists = ids_of(result.sequences_of_rank);
  std::sort(lists.begin(), lists.end());
  EXPECT_EQ(lists, (Lists{{0}, {1, 4}, {2, 3}}));
}

TEST(Balance, BeatsLongestFirstAndKarmarkarKarpWhereBothMiss) {
  const Costs costs = {5, 5, 4, 3, 3};  // 5+5 and 4+3+3; longest first and differencing give 11
  const Balance result = balance(costs, 2);
  EXPECT_EQ(result.max_cost, 10);
  EXPECT_EQ(result.status, Status::optimal);
}

TEST(Balance, KeepsCountsEqualAtAPrice) {
  const Costs costs = {9, 1, 1, 1};
  EXPECT_EQ(balance(costs, 2).max_cost, 9);
  const Balance equal = balance(costs, 2, {.equal_count = true});
  EXPECT_EQ(equal.max_cost, 10);
  EXPECT_EQ(equal.lower_bound, 10);
  EXPECT_EQ(equal.status, Status::optimal);
}

TEST(Balance, HandlesAnEmptyBatch) {
  for (const BalanceOptions& options :
       {BalanceOptions{}, BalanceOptions{.equal_count = true}, BalanceOptions{.minibatch = 3},
        BalanceOptions{.keep_groups = KeepGroups::rank}, BalanceOptions{.capacity = 1}}) {
    const Balance result = balance(Costs{}, 4, options);
    EXPECT_EQ(result.status, Status::optimal);
    EXPECT_EQ(result.max_cost, 0);
    EXPECT_EQ(result.lower_bound, 0);
    EXPECT_EQ(result.mean_cost, 0.0);
    EXPECT_EQ(ids_of(result.sequences_of_rank), Lists(4));
  }
}

TEST(Balance, GivesOneRankEverything) {
  const Balance result = balance(Costs{3, 1, 2}, 1);
  EXPECT_EQ(ids_of(result.sequences_of_rank), (Lists{{0, 1, 2}}));
  EXPECT_EQ(result.max_cost, 6);
  EXPECT_EQ(result.status, Status::optimal);
}

TEST(Balance, LeavesRanksEmptyWhenSequencesAreFew) {
  for (const bool equal_count : {false, true}) {
    const Balance one = balance(Costs{7}, 3, {.equal_count = equal_count});
    EXPECT_EQ(one.max_cost, 7);
    EXPECT_EQ(one.status, Status::optimal);
    EXPECT_EQ(one.sequences_of_rank.size(), 3u);
    const Costs two = {3, 1};
    const Balance result = balance(two, 5, {.equal_count = equal_count});
    EXPECT_EQ(result.max_cost, 3);
    EXPECT_EQ(result.status, Status::optimal);
    expect_kept(result, {.costs = two}, 5, {.equal_count = equal_count});
  }
}

TEST(Balance, SpreadsZeroAndEqualCosts) {
  const Balance zeros = balance(Costs(7, 0), 3, {.equal_count = true});
  EXPECT_EQ(zeros.max_cost, 0);
  EXPECT_EQ(zeros.status, Status::optimal);
  expect_kept(zeros, {.costs = Costs(7, 0)}, 3, {.equal_count = true});
  const Balance equal = balance(Costs(7, 5), 3);
  EXPECT_EQ(equal.max_cost, 15);
  EXPECT_EQ(equal.lower_bound, 15);  // three of the 2*3+1 dearest share a rank
  EXPECT_EQ(equal.status, Status::optimal);
}

TEST(Balance, AddsUpToTwoToThe62) {
  const Nanoseconds half = max_total_cost / 2;
  const Balance two = balance(Costs{half, half / 2, half / 2}, 2);
  EXPECT_EQ(two.max_cost, half);
  EXPECT_EQ(two.status, Status::optimal);
  EXPECT_EQ(balance(Costs{max_total_cost}, 1).max_cost, max_total_cost);
  EXPECT_EQ(balance(Costs{0, max_total_cost, 0}, 2, {.equal_count = true}).max_cost,
            max_total_cost);
  const Costs thirds(3, max_total_cost / 3);
  const Balance three = balance(thirds, 2, {.minibatch = 1});
  EXPECT_EQ(three.max_cost, max_total_cost / 3 * 3);
}

TEST(Balance, DividesOverPrimeNumbersOfRanks) {
  for (const std::int32_t ranks : {2, 3, 5, 7, 11, 13, 127}) {
    for (const bool equal_count : {false, true}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, equal_count " << equal_count);
      const RandomBatch batch = random_batch(17, {.count = 100, .longest = 5000});
      const BalanceOptions options{.equal_count = equal_count};
      expect_kept(balance(batch.view(), ranks, options), batch.view(), ranks, options);
    }
  }
}

TEST(Balance, BalancesEachMinibatchAlone) {
  const Costs costs = {1, 2, 3, 9, 1, 1, 5};  // mini-batches 1 2 3, 9 1 1, 5
  const Balance result = balance(costs, 2, {.minibatch = 3});
  EXPECT_EQ(result.max_cost, 3 + 9 + 5);
  EXPECT_EQ(result.lower_bound, 3 + 9 + 5);
  EXPECT_EQ(result.status, Status::optimal);
  expect_kept(result, {.costs = costs}, 2, {.minibatch = 3});
  EXPECT_EQ(balance(costs, 2, {.minibatch = 7}), balance(costs, 2));
  EXPECT_EQ(balance(costs, 2, {.minibatch = 1000}), balance(costs, 2));
}

TEST(Balance, KeepsGroupsTogetherWhereverTheirRowsLie) {
  const Costs costs = {4, 1, 4, 2, 1, 4};
  const auto groups = groups_of({0, 5, 0, 2, 5, 2});  // 4+4, 1+1, 2+4
  const BalanceOptions options{.keep_groups = KeepGroups::rank};
  const Balance result = balance({.costs = costs, .groups = groups}, 2, options);
  EXPECT_EQ(result.max_cost, 8);
  EXPECT_EQ(result.lower_bound, 8);
  Lists lists = ids_of(result.sequences_of_rank);
  std::sort(lists.begin(), lists.end());
  EXPECT_EQ(lists, (Lists{{0, 2}, {1, 3, 4, 5}}));
}

TEST(Balance, CountsGroupsWhenTheyAreKept) {
  const Costs costs = {1, 1, 1, 1, 1, 1};
  const auto groups = groups_of({0, 0, 0, 0, 1, 2});
  const BalanceOptions options{.equal_count = true, .keep_groups = KeepGroups::rank};
  const Balance result = balance({.costs = costs, .groups = groups}, 3, options);
  EXPECT_EQ(result.max_cost, 4);
  expect_kept(result, {.costs = costs, .groups = groups}, 3, options);
}

TEST(Balance, MeetsTheCapacityExactly) {
  const Lengths lengths = {6, 4, 5, 5};
  const Costs costs = {1, 9, 9, 1};  // by cost alone 4 and 5 would part
  const BalanceOptions options{.capacity = 10};
  const Balance result = balance({.lengths = lengths, .costs = costs}, 2, options);
  EXPECT_EQ(result.max_cost, 10);
  EXPECT_EQ(result.status, Status::optimal);
  expect_kept(result, {.lengths = lengths, .costs = costs}, 2, options);
  EXPECT_EQ(balance({.lengths = lengths, .costs = costs}, 2, {.capacity = no_limit}).max_cost, 10);
}

Balance under_capacity(const Lengths& lengths, std::int32_t ranks, Tokens capacity,
                       std::optional<std::int64_t> max_work = {}) {
  return balance({.lengths = lengths, .costs = lengths}, ranks,
                 {.capacity = capacity, .max_work = max_work});
}

TEST(Balance, NamesWhatExceedsTheCapacity) {
  const Balance long_one = under_capacity({3, 11}, 2, 10);
  EXPECT_EQ(long_one.status, Status::infeasible);
  EXPECT_EQ(long_one.reason, "sequence 1 has 11 tokens, a rank may hold 10");
  EXPECT_TRUE(long_one.sequences_of_rank.empty());

  const Lengths lengths = {3, 6, 1, 6};
  const auto groups = groups_of({2, 1, 2, 1});
  const Balance long_group = balance({.lengths = lengths, .costs = lengths, .groups = groups}, 2,
                                     {.keep_groups = KeepGroups::rank, .capacity = 10});
  EXPECT_EQ(long_group.status, Status::infeasible);
  EXPECT_EQ(long_group.reason, "the group of sequence 1 has 12 tokens, a rank may hold 10");

  const Balance many = under_capacity({7, 7, 7}, 2, 10);
  EXPECT_EQ(many.status, Status::infeasible);
  EXPECT_EQ(many.reason, "the sequences from 0 on have 21 tokens, 2 ranks of 10 hold 20");
}

TEST(Balance, ProvesInfeasibleOrSaysUnknown) {
  const Balance proved = under_capacity({6, 6, 6}, 2, 10);
  EXPECT_EQ(proved.status, Status::infeasible);
  EXPECT_EQ(proved.reason,
            "no assignment of the sequences from 0 on to 2 ranks of 10 tokens exists");
  const Balance given_up = under_capacity({6, 6, 6}, 2, 10, 0);
  EXPECT_EQ(given_up.status, Status::unknown);
  EXPECT_EQ(given_up.reason,
            "no assignment of the sequences from 0 on to 2 ranks of 10 tokens was found");
  for (const Balance& result : {proved, given_up}) {
    EXPECT_TRUE(result.sequences_of_rank.empty());
    EXPECT_EQ(result.max_cost, 0);
  }
  const Lengths lengths = {1, 1, 6, 6, 6};
  const Balance second = balance({.lengths = lengths, .costs = lengths}, 2,
                                 {.minibatch = 2, .capacity = 10, .max_work = {}});
  EXPECT_EQ(second.status, Status::optimal);
  const Balance third = balance({.lengths = Lengths{1, 1, 1, 6, 6, 6}, .costs = Costs(6, 1)}, 2,
                                {.minibatch = 3, .capacity = 10});
  EXPECT_EQ(third.status, Status::infeasible);
  EXPECT_EQ(third.reason,
            "no assignment of the sequences from 3 on to 2 ranks of 10 tokens exists");
}

TEST(Balance, NamesWhatItRejects) {
  const auto message = [](const Sequences& input, std::int32_t ranks,
                          const BalanceOptions& options = {}) {
    return message_of([&] { (void)balance(input, ranks, options); });
  };
  const Costs costs = {1, 2, 3};
  const Sequences plain{.costs = costs};
  EXPECT_EQ(message(plain, 2), "accepted");
  EXPECT_EQ(message(plain, 0), "[balance] ranks is 0, must be from 1 to 1048576");
  EXPECT_EQ(message(plain, -3), "[balance] ranks is -3, must be from 1 to 1048576");
  EXPECT_EQ(message(plain, (1 << 20) + 1), "[balance] ranks is 1048577, must be from 1 to 1048576");
  EXPECT_EQ(message(plain, 2, {.keep_groups = KeepGroups::microbatch}),
            "[balance] keep_groups is microbatch, must be none or rank");
  EXPECT_EQ(message(plain, 2, {.minibatch = -1}), "[balance] minibatch is -1, must be at least 0");
  EXPECT_EQ(message(plain, 2, {.capacity = -1}), "[balance] capacity is -1, must be at least 0");
  EXPECT_EQ(message(plain, 2, {.max_work = -1}), "[balance] max_work is -1, must be at least 0");
  EXPECT_EQ(message(plain, 2, {.max_work = 0}), "accepted");
  EXPECT_EQ(message({.costs = Costs{1, -2}}, 2), "[balance] costs[1] is -2, must be at least 0");
  EXPECT_EQ(message({.costs = Costs{max_total_cost, 0}}, 2), "accepted");
  EXPECT_EQ(message({.costs = Costs{max_total_cost, 0, 1}}, 2),
            "[balance] the costs up to sequence 2 add up to more than 2^62");
  EXPECT_EQ(message({.costs = Costs{1, std::numeric_limits<Nanoseconds>::max()}}, 2),
            "[balance] the costs up to sequence 1 add up to more than 2^62");

  EXPECT_EQ(message(plain, 2, {.capacity = 9}),
            "[balance] 0 lengths, must be 3 as there are costs");
  EXPECT_EQ(message({.lengths = Lengths{1, 2}, .costs = costs}, 2, {.capacity = 9}),
            "[balance] 2 lengths, must be 3 as there are costs");
  EXPECT_EQ(message({.lengths = Lengths{1, 2, 0}, .costs = costs}, 2, {.capacity = 9}),
            "[balance] lengths[2] is 0, must be from 1 to 2147483647");
  EXPECT_EQ(message({.lengths = Lengths{1, max_length + 1, 1}, .costs = costs}, 2, {.capacity = 9}),
            "[balance] lengths[1] is 2147483648, must be from 1 to 2147483647");

  const BalanceOptions kept{.keep_groups = KeepGroups::rank};
  EXPECT_EQ(message(plain, 2, kept),
            "[balance] keep_groups needs a group for each of 3 sequences, 0 are given");
  EXPECT_EQ(message({.costs = costs, .groups = groups_of({0, 1})}, 2, kept),
            "[balance] keep_groups needs a group for each of 3 sequences, 2 are given");
  EXPECT_EQ(message({.costs = costs, .groups = groups_of({0, 3, 1})}, 2, kept),
            "[balance] groups[1] is 3, must be from 0 to 2");
  EXPECT_EQ(message({.costs = costs, .groups = groups_of({-1, 0, 1})}, 2, kept),
            "[balance] groups[0] is -1, must be from 0 to 2");
  EXPECT_EQ(message({.costs = costs, .groups = groups_of({0, 1, 1})}, 2,
                    {.keep_groups = KeepGroups::rank, .minibatch = 2}),
            "[balance] the group of sequence 2 lies in mini-batches 0 and 1, must lie in one");
}

TEST(Balance, RejectsSpansOfAnotherSizeEvenIfUnused) {
  const Costs costs = {1, 2, 3};
  const Lengths two = {1, 2};
  EXPECT_EQ(message_of([&] { (void)balance({.lengths = two, .costs = costs}, 2); }),
            "[balance] 2 lengths, must be 3 as there are costs");
}

TEST(Balance, PutsSmallSequencesAtBothEnds) {
  EXPECT_EQ(small_ends(Costs{9, 1, 5, 3, 7}), (std::vector<std::size_t>{1, 2, 0, 4, 3}));
  EXPECT_TRUE(small_ends(Costs{}).empty());
  EXPECT_EQ(small_ends(Costs{4}), (std::vector<std::size_t>{0}));
  EXPECT_EQ(small_ends(Costs{4, 4}), (std::vector<std::size_t>{0, 1}));

  // Partitions and orders of verl's trainer.
  const auto ordered = [](const Lengths& lengths, const Lists& partitions) {
    Lists result;
    for (const auto& partition : partitions) {
      Costs costs;
      for (const std::int32_t id : partition) {
        const Tokens length = lengths[static_cast<std::size_t>(id)];
        costs.push_back(24576 * length + length * length);
      }
      result.emplace_back();
      for (const std::size_t place : small_ends(costs)) result.back().push_back(partition[place]);
    }
    return result;
  };
  EXPECT_EQ(ordered({1000, 200, 300, 400, 500, 600, 700, 800}, {{2, 4, 6, 7}, {0, 1, 3, 5}}),
            (Lists{{2, 6, 7, 4}, {1, 5, 0, 3}}));
  EXPECT_EQ(ordered({6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538, 6436,
                     6814, 2500, 7944},
                    {{6, 7, 9, 12}, {1, 2, 10, 11}, {3, 4, 13, 14}, {0, 5, 8, 15}}),
            (Lists{{6, 12, 7, 9}, {1, 2, 11, 10}, {14, 13, 3, 4}, {5, 0, 15, 8}}));
  EXPECT_EQ(ordered({8192, 128, 64, 64, 4096, 4096, 2048, 100, 50, 50, 6000, 10},
                    {{0, 1, 3, 4, 9, 11}, {2, 5, 6, 7, 8, 10}}),
            (Lists{{11, 3, 4, 0, 1, 9}, {8, 7, 5, 10, 6, 2}}));
}

TEST(Balance, OrdersInsideEachMinibatch) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const RandomBatch batch = random_batch(seed, {.count = 1 + random.below(60), .longest = 50});
    const auto ranks = static_cast<std::int32_t>(1 + random.below(5));
    BalanceOptions options{.minibatch = static_cast<std::int32_t>(random.below(30))};
    const Balance plain = balance(batch.view(), ranks, options);
    options.order = Order::small_ends;
    const Balance ordered = balance(batch.view(), ranks, options);
    expect_kept(plain, batch.view(), ranks, {.minibatch = options.minibatch});
    expect_kept(ordered, batch.view(), ranks, options);
    EXPECT_EQ(ordered.max_cost, plain.max_cost);
  }
}

// Every combination of what balance() can be asked for, one bit each.
class BalanceCombination : public testing::TestWithParam<unsigned> {
 protected:
  [[nodiscard]] BalanceOptions options(Random& random, const BatchShape& shape) const {
    BalanceOptions options;
    options.equal_count = (GetParam() & 1) != 0;
    if ((GetParam() & 2) != 0) options.keep_groups = KeepGroups::rank;
    options.minibatch = static_cast<std::int32_t>(shape.minibatch);
    // From hopeless to generous.
    if ((GetParam() & 8) != 0) options.capacity = random.between(1, 3 * shape.longest);
    return options;
  }
  [[nodiscard]] BatchShape shape(Random& random) const {
    BatchShape shape{.count = random.below(50) == 0 ? 10 : random.below(10),
                     .longest = random.below(2) == 0 ? 10 : 1000};
    if ((GetParam() & 4) != 0) shape.minibatch = 1 + random.below(6);
    return shape;
  }
};

TEST_P(BalanceCombination, IsOptimalAndSaysSo) {
  int num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const BatchShape shape = this->shape(random);
    const BalanceOptions options = this->options(random, shape);
    const RandomBatch batch = random_batch(seed, shape);
    const auto ranks = static_cast<std::int32_t>(1 + random.below(shape.count + 2));
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << ranks << " ranks, capacity " << options.capacity
                 << ", minibatch " << options.minibatch << ", " << batch);
    const std::optional<Nanoseconds> best = oracle::best_balance(batch.view(), ranks, options);
    const Balance result = balance(batch.view(), ranks, options);
    if (!best) {
      ++num_infeasible;
      ASSERT_EQ(result.status, Status::infeasible);
      ASSERT_NE(result.reason, "");
      ASSERT_TRUE(result.sequences_of_rank.empty());
      continue;
    }
    expect_kept(result, batch.view(), ranks, options);
    ASSERT_EQ(result.max_cost, *best);
    ASSERT_EQ(result.lower_bound, *best);
    ASSERT_EQ(result.status, Status::optimal);
  }
  EXPECT_EQ(num_infeasible > 0, (GetParam() & 8) != 0);
}

TEST_P(BalanceCombination, IsSoundWithAnyAmountOfWork) {
  for (std::uint64_t seed = 1000; seed < 1600; ++seed) {
    Random random(seed);
    const BatchShape shape = this->shape(random);
    BalanceOptions options = this->options(random, shape);
    options.max_work = random.between(0, std::int64_t{1} << random.below(12));
    const RandomBatch batch = random_batch(seed, shape);
    const auto ranks = static_cast<std::int32_t>(1 + random.below(shape.count + 2));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << ranks << " ranks, capacity "
                                    << options.capacity << ", minibatch " << options.minibatch
                                    << ", max_work " << *options.max_work << ", " << batch);
    const std::optional<Nanoseconds> best = oracle::best_balance(batch.view(), ranks, options);
    const Balance result = balance(batch.view(), ranks, options);
    if (result.status == Status::optimal || result.status == Status::feasible) {
      ASSERT_TRUE(best);
      expect_kept(result, batch.view(), ranks, options);
      ASSERT_LE(result.lower_bound, *best);
      ASSERT_GE(result.max_cost, *best);
    } else {
      ASSERT_TRUE(result.status == Status::unknown || !best);
      ASSERT_NE(result.reason, "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BalanceCombination, testing::Range(0u, 16u),
                         [](const auto& combination) {
                           std::string name =
                               (combination.param & 1) != 0 ? "EqualCount" : "FreeCount";
                           if ((combination.param & 2) != 0) name += "Groups";
                           if ((combination.param & 4) != 0) name += "Minibatches";
                           if ((combination.param & 8) != 0) name += "Capacity";
                           return name;
                         });

Nanoseconds longest_first_cost(Costs costs, std::int32_t ranks) {
  std::sort(costs.rbegin(), costs.rend());
  Costs loads(static_cast<std::size_t>(ranks), 0);
  for (const Nanoseconds cost : costs) *std::min_element(loads.begin(), loads.end()) += cost;
  return *std::max_element(loads.begin(), loads.end());
}

TEST(Balance, IsNeverWorseThanLongestFirst) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const RandomBatch batch =
        random_batch(seed, {.count = 1 + random.below(300), .longest = 100'000});
    const auto ranks = static_cast<std::int32_t>(1 + random.below(40));
    BalanceOptions options;
    if (random.below(3) == 0) options.max_work = random.between(0, 1000);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << ranks << " ranks");
    ASSERT_LE(balance(batch.view(), ranks, options).max_cost,
              longest_first_cost(batch.costs, ranks));
  }
}

// The same where ranks hold q or q+1 sequences, the larger number only as often as it must be.
Nanoseconds equal_longest_first_cost(Costs costs, std::int32_t ranks) {
  std::sort(costs.rbegin(), costs.rend());
  const std::size_t k = static_cast<std::size_t>(ranks);
  const std::size_t least = costs.size() / k;
  std::size_t extra = costs.size() % k;
  Costs loads(k, 0);
  std::vector<std::size_t> counts(k, 0);
  for (const Nanoseconds cost : costs) {
    std::size_t best = k;
    for (std::size_t rank = 0; rank < k; ++rank) {
      const bool is_open = counts[rank] < least || (counts[rank] == least && extra > 0);
      if (is_open && (best == k || loads[rank] < loads[best])) best = rank;
    }
    if (counts[best] == least) --extra;
    ++counts[best];
    loads[best] += cost;
  }
  return *std::max_element(loads.begin(), loads.end());
}

TEST(Balance, IsNeverWorseThanLongestFirstWithEqualCounts) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    // A long tail: here plain longest first is now and then the better start.
    Costs costs(static_cast<std::size_t>(random.between(13, 60)));
    const std::int64_t largest = random.below(2) == 0 ? 20 : 100'000;
    for (Nanoseconds& cost : costs) {
      cost = random.between(1, largest) * (random.below(6) == 0 ? random.between(2, 20) : 1);
    }
    const auto ranks = static_cast<std::int32_t>(random.between(2, 12));
    BalanceOptions options{.equal_count = true};
    if (random.below(2) == 0) options.max_work = random.between(0, 20);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_LE(balance(costs, ranks, options).max_cost, equal_longest_first_cost(costs, ranks));
  }
}

TEST(Balance, IsNeverWorseThanKarmarkarKarp) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const bool is_equal = random.below(2) == 0;
    const auto ranks = 1 + random.below(24);
    const std::size_t count = is_equal ? ranks * (1 + random.below(12)) : ranks + random.below(200);
    const RandomBatch batch = random_batch(seed, {.count = count, .longest = 100'000});
    BalanceOptions options{.equal_count = is_equal};
    if (random.below(3) == 0) options.max_work = random.between(0, 1000);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << ranks << " ranks");
    Nanoseconds rival = 0;
    Tokens most_tokens = 0;
    for (const auto& ids :
         karmarkar_karp(std::span<const Nanoseconds>(batch.costs), static_cast<std::int32_t>(ranks),
                        is_equal ? PartSizes::equal : PartSizes::free)) {
      rival = std::max(rival, cost_of(ids, batch.costs));
      most_tokens = std::max(most_tokens, cost_of(ids, batch.lengths));
    }
    ASSERT_LE(balance(batch.view(), static_cast<std::int32_t>(ranks), options).max_cost, rival);
    options.capacity = most_tokens;  // which that partition keeps
    ASSERT_LE(balance(batch.view(), static_cast<std::int32_t>(ranks), options).max_cost, rival);
  }
}

TEST(Balance, GivesEqualResultsOnManyThreads) {
  std::vector<RandomBatch> batches;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    batches.push_back(random_batch(seed, {.count = 5 + seed * 7, .longest = 30'000}));
  }
  const auto run = [&] {
    std::vector<Balance> results;
    for (const RandomBatch& batch : batches) {
      results.push_back(balance(batch.view(), 8, {.equal_count = true}));
      results.push_back(
          balance(batch.view(), 7, {.keep_groups = KeepGroups::rank, .order = Order::small_ends}));
      results.push_back(balance(batch.view(), 5, {.minibatch = 50, .capacity = 300'000}));
    }
    return results;
  };
  expect_equal_on_threads(run);
}

}  // namespace
}  // namespace isochron
