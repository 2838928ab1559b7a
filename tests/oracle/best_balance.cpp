#include "tests/oracle/best_balance.h"

#include <algorithm>
#include <vector>

#include "tests/oracle/partitions.h"

namespace isochron::oracle {

namespace {

struct Rank {
  Tokens tokens = 0;
  Nanoseconds cost = 0;
  std::int32_t num_units = 0;
};

bool is_allowed(const std::vector<Rank>& ranks, const BalanceOptions& options) {
  std::int32_t fewest = ranks.front().num_units;
  std::int32_t most = fewest;
  for (const Rank& rank : ranks) {
    if (options.capacity > 0 && rank.tokens > options.capacity) return false;
    fewest = std::min(fewest, rank.num_units);
    most = std::max(most, rank.num_units);
  }
  return !options.equal_count || most - fewest <= 1;
}

std::optional<Nanoseconds> best_of_minibatch(const std::vector<Unit>& units, std::size_t num_ranks,
                                             const BalanceOptions& options) {
  std::optional<Nanoseconds> best;
  for_each_partition(units.size(), num_ranks,
                     [&](const std::vector<std::size_t>& rank_of, std::size_t) {
                       std::vector<Rank> ranks(num_ranks);
                       Nanoseconds largest = 0;
                       for (std::size_t i = 0; i < units.size(); ++i) {
                         Rank& rank = ranks[rank_of[i]];
                         rank.tokens += units[i].tokens;
                         rank.cost += units[i].cost;
                         rank.num_units += 1;
                         largest = std::max(largest, rank.cost);
                       }
                       if ((!best || largest < *best) && is_allowed(ranks, options)) best = largest;
                     });
  return best;
}

}  // namespace

std::optional<Nanoseconds> best_balance(const Sequences& sequences, std::int32_t ranks,
                                        const BalanceOptions& options) {
  const std::size_t n = sequences.costs.size();
  const auto rows = options.minibatch == 0 ? n : static_cast<std::size_t>(options.minibatch);
  const Move move = options.keep_groups == KeepGroups::rank ? Move::groups : Move::sequences;
  Nanoseconds sum = 0;
  for (std::size_t first = 0; first < n; first += rows) {
    const std::optional<Nanoseconds> best =
        best_of_minibatch(units_of(sequences, move, first, std::min(n, first + rows)),
                          static_cast<std::size_t>(ranks), options);
    if (!best) return std::nullopt;
    sum += *best;
  }
  return sum;
}

}  // namespace isochron::oracle
