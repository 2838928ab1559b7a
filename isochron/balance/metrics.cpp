#include "isochron/balance/metrics.h"

#include <algorithm>
#include <limits>

#include "isochron/core/require.h"

namespace isochron {

LoadSpread load_spread(std::span<const std::int64_t> values,
                       std::span<const std::vector<SequenceId>> sequences_of_rank) {
  constexpr std::string_view where = "load_spread";
  require(!sequences_of_rank.empty(), where, "sequences_of_rank is empty, must have a rank");
  std::int64_t total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(values[i] >= 0, where, "values[{}] is {}, must be at least 0", i, values[i]);
    require(values[i] <= max_total_cost - total, where,
            "values up to values[{}] add up to more than 2^62", i);
    total += values[i];
  }
  LoadSpread spread;
  spread.min = std::numeric_limits<std::int64_t>::max();
  spread.balanced_min = std::numeric_limits<std::int64_t>::max();
  const std::size_t num_ranks = sequences_of_rank.size();
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const std::size_t end =
        begin + values.size() / num_ranks + (rank < values.size() % num_ranks ? 1 : 0);
    std::int64_t before = 0;
    for (std::size_t i = begin; i < end; ++i) before += values[i];
    std::int64_t after = 0;
    for (const SequenceId id : sequences_of_rank[rank]) {
      require(id.value() >= 0 && id.index() < values.size(), where,
              "rank {} has sequence {}, must be from 0 to {}", rank, id.value(),
              static_cast<std::int64_t>(values.size()) - 1);
      require(values[id.index()] <= max_total_cost - after, where,
              "the sequences of rank {} add up to more than 2^62", rank);
      after += values[id.index()];
    }
    spread.min = std::min(spread.min, before);
    spread.max = std::max(spread.max, before);
    spread.balanced_min = std::min(spread.balanced_min, after);
    spread.balanced_max = std::max(spread.balanced_max, after);
    begin = end;
  }
  spread.minmax_diff = spread.max - spread.min;
  spread.mean = static_cast<double>(total) / static_cast<double>(num_ranks);
  return spread;
}

BalanceMetrics balance_metrics(std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
                               std::span<const std::vector<SequenceId>> sequences_of_rank) {
  require(lengths.size() == costs.size(), "balance_metrics", "{} lengths and {} costs differ",
          lengths.size(), costs.size());
  return {load_spread(lengths, sequences_of_rank), load_spread(costs, sequences_of_rank)};
}

std::vector<std::pair<std::string, double>> named_numbers(const BalanceMetrics& metrics) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [prefix, spread] :
       {std::pair("global_seqlen/", &metrics.tokens), std::pair("global_cost/", &metrics.cost)}) {
    const auto add = [&, name_prefix = std::string(prefix)](const char* name, auto value) {
      numbers.emplace_back(name_prefix + name, static_cast<double>(value));
    };
    add("min", spread->min);
    add("max", spread->max);
    add("minmax_diff", spread->minmax_diff);
    add("balanced_min", spread->balanced_min);
    add("balanced_max", spread->balanced_max);
    add("mean", spread->mean);
  }
  return numbers;
}

}  // namespace isochron
