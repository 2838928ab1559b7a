#include "tests/oracle/best_packing.h"

#include <algorithm>

#include "tests/oracle/partitions.h"

namespace isochron::oracle {

namespace {

struct Microbatch {
  Tokens tokens = 0;
  Nanoseconds cost = 0;
  std::size_t num_units = 0;
  std::size_t num_sequences = 0;
};

bool is_allowed(const Microbatch& microbatch, const PackOptions& options) {
  if (options.max_sequences > 0 &&
      microbatch.num_sequences > static_cast<std::size_t>(options.max_sequences)) {
    return false;
  }
  const bool is_alone = microbatch.num_units == 1 && options.oversize == Oversize::alone;
  return microbatch.tokens <= options.capacity || is_alone;
}

// [k]: the smallest largest cost of k micro-batches that all hold something; none: impossible.
using CostOfCount = std::vector<std::optional<Nanoseconds>>;

CostOfCount costs_by_count(std::span<const Unit> units, const PackOptions& options) {
  CostOfCount best(units.size() + 1);
  for_each_partition(units.size(), units.size(),
                     [&](const std::vector<std::size_t>& set_of, std::size_t num_sets) {
                       std::vector<Microbatch> sets(num_sets);
                       Nanoseconds largest = 0;
                       for (std::size_t i = 0; i < units.size(); ++i) {
                         Microbatch& set = sets[set_of[i]];
                         set.tokens += units[i].tokens;
                         set.cost += units[i].cost;
                         set.num_units += 1;
                         set.num_sequences += units[i].sequences.size();
                         largest = std::max(largest, set.cost);
                       }
                       for (const Microbatch& set : sets) {
                         if (!is_allowed(set, options)) return;
                       }
                       std::optional<Nanoseconds>& known = best[num_sets];
                       if (!known || largest < *known) known = largest;
                     });
  return best;
}

bool is_count_asked(std::int64_t count, const PackOptions& options) {
  return count % options.multiple == 0 && count >= options.min_count &&
         (!options.count || count == *options.count);
}

// The first count that is asked for and possible, from 0 to `most`. Micro-batches beyond one for
// each unit stay empty.
std::optional<Score> best_up_to(std::int64_t most, const CostOfCount& cost_of_count,
                                const PackOptions& options) {
  const auto num_units = static_cast<std::int64_t>(cost_of_count.size()) - 1;
  for (std::int64_t count = 0; count <= most; ++count) {
    const auto& cost = cost_of_count[static_cast<std::size_t>(std::min(count, num_units))];
    if (is_count_asked(count, options) && cost) return Score{count, *cost};
  }
  return std::nullopt;
}

}  // namespace

std::optional<BestPacking> best_packing(const Sequences& sequences, const PackOptions& options) {
  const Move move = options.keep_groups == KeepGroups::microbatch ? Move::groups : Move::sequences;
  const std::vector<Unit> units = units_of(sequences, move, 0, sequences.costs.size());
  for (const Unit& unit : units) {  // no policy of the counts heals what fits nowhere
    if (!is_allowed({unit.tokens, unit.cost, 1, unit.sequences.size()}, options)) return {};
  }
  const auto num_units = static_cast<std::int64_t>(units.size());
  if (options.short_ == Short::empty) {
    const std::int64_t beyond = std::max(
        {num_units, std::int64_t{options.min_count}, std::int64_t{options.count.value_or(0)}});
    const auto best =
        best_up_to(beyond + options.multiple, costs_by_count(units, options), options);
    if (!best) return std::nullopt;
    return BestPacking{*best, {}};
  }
  BestPacking answer;
  for (std::size_t kept = units.size();; --kept) {
    const auto first = std::span(units).first(kept);
    const auto best =
        best_up_to(static_cast<std::int64_t>(kept), costs_by_count(first, options), options);
    if (best) {
      answer.score = *best;
      std::sort(answer.dropped.begin(), answer.dropped.end());
      return answer;
    }
    // An exact count that is too small is no lack of sequences, and one too large stays too large.
    if (options.short_ == Short::error || options.count || kept <= 1) return std::nullopt;
    const Unit& last = units[kept - 1];
    answer.dropped.insert(answer.dropped.end(), last.sequences.begin(), last.sequences.end());
  }
}

Score best_score(std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
                 Tokens capacity) {
  return best_packing({.lengths = lengths, .costs = costs}, {.capacity = capacity}).value().score;
}

Score score(const std::vector<std::vector<SequenceId>>& microbatches,
            std::span<const Nanoseconds> costs) {
  Score result{static_cast<std::int64_t>(microbatches.size()), 0};
  for (const std::vector<SequenceId>& microbatch : microbatches) {
    Nanoseconds cost = 0;
    for (const SequenceId id : microbatch) cost += costs[id.index()];
    result.max_cost = std::max(result.max_cost, cost);
  }
  return result;
}

}  // namespace isochron::oracle
