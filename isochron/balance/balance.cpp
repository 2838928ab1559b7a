#include "isochron/balance/balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/balance/unit_table.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::string_view where = "balance";

void check_inputs(const Sequences& sequences, std::int32_t ranks, const BalanceOptions& options) {
  const auto& [lengths, costs, groups] = sequences;
  require(ranks >= 1 && ranks <= max_ranks, where, "ranks is {}, must be from 1 to {}", ranks,
          max_ranks);
  require(options.keep_groups != KeepGroups::microbatch, where,
          "keep_groups is microbatch, must be none or rank");
  require(options.minibatch >= 0, where, "minibatch is {}, must be at least 0", options.minibatch);
  require(options.capacity >= 0, where, "capacity is {}, must be at least 0", options.capacity);
  require(!options.max_work || *options.max_work >= 0, where, "max_work is {}, must be at least 0",
          options.max_work.value_or(0));
  require(costs.size() <= static_cast<std::size_t>(max_length), where,
          "{} sequences, must be at most {}", costs.size(), max_length);
  check_costs(where, costs);
  if (options.capacity > 0 || !lengths.empty()) check_lengths(where, lengths, costs.size());
  if (options.keep_groups == KeepGroups::rank) check_groups(where, groups, costs.size());
}

// A group that is kept on one rank lies in one mini-batch.
void check_groups_in_blocks(std::span<const PromptGroupId> groups, std::size_t rows) {
  std::vector<std::int64_t> block_of_group(groups.size(), -1);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto block = static_cast<std::int64_t>(i / rows);
    std::int64_t& home = block_of_group[groups[i].index()];
    if (home < 0) home = block;
    require(home == block, where,
            "the group of sequence {} lies in mini-batches {} and {}, must lie in one", i, home,
            block);
  }
}

// Why the capacity excludes every assignment, if it does so at sight.
std::optional<std::string> find_exclusion(const UnitTable& block, std::int32_t ranks,
                                          Tokens capacity) {
  const std::span<const Tokens> tokens_of = block.units().tokens;
  Tokens total = 0;
  for (std::size_t unit = 0; unit < tokens_of.size(); ++unit) {
    if (tokens_of[unit] > capacity) {
      return fmt::format("{} has {} tokens, a rank may hold {}", block.name_of_unit(unit),
                         tokens_of[unit], capacity);
    }
    total += tokens_of[unit];
  }
  if ((total + ranks - 1) / ranks > capacity) {
    return fmt::format("the sequences from {} on have {} tokens, {} ranks of {} hold {}",
                       block.sequence(0).value(), total, ranks, capacity, capacity * ranks);
  }
  return std::nullopt;
}

Balance failure(Status status, std::string reason) {
  Balance result;
  result.status = status;
  result.reason = std::move(reason);
  return result;
}

void append(const UnitTable& block, const BinOf& bin_of, const Sequences& sequences, Order order,
            std::span<std::vector<SequenceId>> sequences_of_rank) {
  std::vector<std::size_t> counts(sequences_of_rank.size(), 0);
  for (std::size_t row = 0; row < block.num_rows(); ++row) {
    ++counts[static_cast<std::size_t>(bin_of[block.unit_of_row(row)])];
  }
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    auto& list = sequences_of_rank[rank];
    list.reserve(list.size() + counts[rank]);
  }
  for (std::size_t row = 0; row < block.num_rows(); ++row) {
    const auto rank = static_cast<std::size_t>(bin_of[block.unit_of_row(row)]);
    sequences_of_rank[rank].push_back(block.sequence(row));
  }
  if (order == Order::index) return;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const std::span<SequenceId> ids = std::span(sequences_of_rank[rank]).last(counts[rank]);
    std::vector<Nanoseconds> costs;
    for (const SequenceId id : ids) costs.push_back(sequences.costs[id.index()]);
    std::vector<SequenceId> ordered;
    for (const std::size_t position : small_ends(costs)) ordered.push_back(ids[position]);
    std::copy(ordered.begin(), ordered.end(), ids.begin());
  }
}

}  // namespace

Balance balance(const Sequences& sequences, std::int32_t ranks, const BalanceOptions& options) {
  check_inputs(sequences, ranks, options);
  const std::size_t n = sequences.costs.size();
  const std::size_t rows = options.minibatch == 0 ? std::max<std::size_t>(n, 1)
                                                  : static_cast<std::size_t>(options.minibatch);
  Balance result;
  result.sequences_of_rank.resize(static_cast<std::size_t>(ranks));
  const bool keeps_groups = options.keep_groups == KeepGroups::rank;
  if (keeps_groups) check_groups_in_blocks(sequences.groups, rows);
  for (std::size_t first = 0; first < n; first += rows) {
    const UnitTable block(sequences, first, std::min(n, first + rows),
                          keeps_groups ? UnitKind::group : UnitKind::sequence);
    Limits limits;
    if (options.capacity > 0) {
      limits.capacity = options.capacity;
      const auto exclusion = find_exclusion(block, ranks, options.capacity);
      if (exclusion) return failure(Status::infeasible, *exclusion);
    }
    if (options.equal_count) {
      limits.min_units = static_cast<std::int32_t>(block.units().count()) / ranks;
      limits.max_units = limits.min_units + 1;
    }
    // Ranks beyond one for each unit stay empty.
    const auto num_bins = std::min(ranks, static_cast<std::int32_t>(block.units().count()));
    const Assignment assignment =
        assign(block.units(), num_bins, limits, RefineGoal::largest, options.max_work);
    if (!assignment.bin_of) {
      return failure(assignment.is_proved ? Status::infeasible : Status::unknown,
                     fmt::format("no assignment of the sequences from {} on to {} ranks of {} "
                                 "tokens {}",
                                 first, ranks, options.capacity,
                                 assignment.is_proved ? "exists" : "was found"));
    }
    result.max_cost += assignment.max_cost;
    result.lower_bound += assignment.lower_bound;
    append(block, *assignment.bin_of, sequences, options.order,
           std::span(result.sequences_of_rank).first(static_cast<std::size_t>(num_bins)));
  }
  const Nanoseconds total =
      std::accumulate(sequences.costs.begin(), sequences.costs.end(), Nanoseconds{0});
  result.mean_cost = static_cast<double>(total) / ranks;
  result.status = result.max_cost == result.lower_bound ? Status::optimal : Status::feasible;
  return result;
}

Balance balance(std::span<const Nanoseconds> costs, std::int32_t ranks,
                const BalanceOptions& options) {
  return balance(Sequences{.costs = costs}, ranks, options);
}

}  // namespace isochron
