// The last stage of a step: micro-batches of a cell, and the balance of all cells.

#include "isochron/plan/steps/cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

#include "isochron/core/random.h"
#include "isochron/plan/steps/cell_bins.h"
#include "tests/plan/singles.h"
#include "tests/support/num_instances.h"

namespace isochron {
namespace {

std::int32_t count_of(CellBins& bins, const std::vector<Tokens>& tokens,
                      const std::vector<std::int32_t>& sequences = {}) {
  std::int64_t work = 0;
  return bins.pack(tokens, sequences, work);
}

TEST(CellBins, FillsMicrobatchesToTheLastTokenWhereFirstFitDoesNot) {
  CellBins bins(10, 0);
  EXPECT_EQ(count_of(bins, {5, 4, 4, 3, 2, 2}), 2);  // 5 3 2 and 4 4 2; first fit: 5 4, 4 3 2, 2
  EXPECT_EQ(bins.bin_of()[1], bins.bin_of()[2]);
}

TEST(CellBins, KeepsTheLimitOnSequences) {
  CellBins bins(10, 2);
  EXPECT_EQ(count_of(bins, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), 3);
  EXPECT_EQ(count_of(bins, {1, 1}, {2, 1}), 2);
}

TEST(CellBins, NothingTakesNoMicrobatch) {
  CellBins bins(10, 0);
  EXPECT_EQ(count_of(bins, {}), 0);
  EXPECT_EQ(count_of(bins, {10}), 1);
}

// The fewest micro-batches of all, over subsets.
std::int32_t fewest(const std::vector<Tokens>& tokens, Tokens capacity) {
  const std::size_t count = std::size_t{1} << tokens.size();
  std::vector<std::int32_t> least(count, std::numeric_limits<std::int32_t>::max() / 2);
  least[0] = 0;
  for (std::size_t set = 1; set < count; ++set) {
    for (std::size_t bin = set; bin != 0; bin = (bin - 1) & set) {
      Tokens sum = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) sum += (bin >> i & 1) != 0 ? tokens[i] : 0;
      if (sum <= capacity) least[set] = std::min(least[set], least[set ^ bin] + 1);
    }
  }
  return least[count - 1];
}

TEST(CellBins, IsNearlyAlwaysAsGoodAsExhaustiveSearch) {
  constexpr Tokens capacity = 100;
  int num_more = 0;
  const std::uint64_t num_questions = num_instances(400);
  for (std::uint64_t seed = 0; seed < num_questions; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Tokens> tokens;
    for (std::int64_t i = random.between(1, 9); i > 0; --i) tokens.push_back(random.between(1, 60));
    std::sort(tokens.begin(), tokens.end(), std::greater<>());
    CellBins bins(capacity, 0);
    const std::int32_t count = count_of(bins, tokens);
    std::vector<Tokens> sums(static_cast<std::size_t>(count), 0);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sums[static_cast<std::size_t>(bins.bin_of()[i])] += tokens[i];
    }
    EXPECT_LE(*std::max_element(sums.begin(), sums.end()), capacity);
    const std::int32_t best = fewest(tokens, capacity);
    EXPECT_GE(count, best);
    EXPECT_LE(count, best + 1);
    num_more += count > best ? 1 : 0;
  }
  std::printf("%d of %d packings take one more than the best\n", num_more,
              static_cast<int>(num_questions));
  EXPECT_LE(num_more * 50, static_cast<int>(num_questions));
}

std::vector<BundleId> all_of(const Problem& problem) {
  std::vector<BundleId> bundles(static_cast<std::size_t>(problem.num_bundles()));
  std::iota(bundles.begin(), bundles.end(), 0);
  return bundles;
}

TEST(Cells, ShakingEndsEarlierWhereNoExchangeHelpsAndNeverLater) {
  int num_earlier = 0;
  const std::uint64_t num_questions = num_instances(200);
  for (std::uint64_t seed = 0; seed < num_questions; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Topology topology{.ranks = static_cast<std::int32_t>(random.between(1, 6)),
                            .capacity = 100};
    std::vector<Tokens> lengths;
    for (std::int64_t i = random.between(1, 20); i > 0; --i) {
      lengths.push_back(random.between(1, 100));
    }
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    const Problem problem(singles(lengths), topology, plain_cost(10),
                          resolved({.context = "static:1"}, topology));
    Cells cells(problem, 1);
    cells.reset(std::vector<Nanoseconds>(static_cast<std::size_t>(topology.ranks), 0));
    cells.add(all_of(problem));
    std::int64_t work = 100'000;
    cells.refine(0, work);
    EXPECT_GT(work, 0);
    const Nanoseconds before = cells.max_load();
    work = 2000;
    cells.shake(0, random, work);
    EXPECT_LE(cells.max_load(), before);
    num_earlier += cells.max_load() < before ? 1 : 0;
    std::size_t num_items = 0;
    for (const Cell& cell : cells.cells()) {
      Nanoseconds load = 0;
      for (const auto& items : cells.pack(cell)) {
        load += 10;
        num_items += items.size();
        for (const ItemId item : items) load += lengths[static_cast<std::size_t>(item)];
      }
      EXPECT_EQ(load, cell.load);
    }
    EXPECT_EQ(num_items, lengths.size());
  }
  std::printf("%d of %d end earlier\n", num_earlier, static_cast<int>(num_questions));
  EXPECT_GE(num_earlier * 20, static_cast<int>(num_questions));
}

// Two ranks pay for one micro-batch each. The first is busy until 60, so that even ends would give
// the second 80 tokens more; but it holds 100 only.
TEST(Cells, AvoidsAMicrobatchThatAllRanksWouldHaveToPayFor) {
  const Topology topology{.ranks = 2, .capacity = 100};
  const Problem problem(singles({30, 30, 20, 20, 20, 20, 20, 20}), topology, plain_cost(10),
                        resolved({.context = "static:1"}, topology));
  Cells cells(problem, 1);
  cells.reset(std::vector<Nanoseconds>{60, 0}, std::vector<std::int32_t>{1, 1});
  cells.add(all_of(problem));
  std::int64_t work = 10'000;
  cells.refine(0, work);
  for (const Cell& cell : cells.cells()) EXPECT_EQ(cell.num_slots, 1);
}

}  // namespace
}  // namespace isochron
