#include "isochron/balance/balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::string_view where = "balance";

void check_inputs(const Sequences& sequences, std::int32_t ranks, const BalanceOptions& options) {
  const auto& [lengths, costs, groups] = sequences;
  require(ranks >= 1, where, "ranks is {}, must be at least 1", ranks);
  require(options.keep_groups != KeepGroups::microbatch, where,
          "keep_groups is microbatch, must be none or rank");
  require(options.minibatch >= 0, where, "minibatch is {}, must be at least 0", options.minibatch);
  require(options.capacity >= 0, where, "capacity is {}, must be at least 0", options.capacity);
  require(!options.max_work || *options.max_work >= 0, where, "max_work is {}, must be at least 0",
          options.max_work.value_or(0));
  require(costs.size() <= static_cast<std::size_t>(max_length), where,
          "{} sequences, must be at most {}", costs.size(), max_length);
  check_costs(where, costs);
  if (options.capacity > 0) check_lengths(where, lengths, costs.size());
  if (options.keep_groups == KeepGroups::rank) check_groups(where, groups, costs.size());
}

// One mini-batch: its units, and the sequences behind them.
class Block {
 public:
  // Rows first to last - 1, each a unit.
  Block(const Sequences& sequences, std::size_t first, std::size_t last)
      : first_(static_cast<std::int32_t>(first)),
        units_{.costs = sequences.costs.subspan(first, last - first)} {
    if (!sequences.lengths.empty()) {
      units_.tokens = sequences.lengths.subspan(first, last - first);
    }
  }

  // The same with one unit for each group. `block_of_group` knows where groups seen before lie.
  Block(const Sequences& sequences, std::size_t first, std::size_t last, std::int32_t number,
        std::vector<std::int32_t>& block_of_group, std::vector<std::int32_t>& unit_of_group)
      : first_(static_cast<std::int32_t>(first)) {
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t group = sequences.groups[i].index();
      std::int32_t& home = block_of_group[group];
      if (home < 0) {
        home = number;
        unit_of_group[group] = static_cast<std::int32_t>(costs_.size());
        costs_.push_back(0);
        tokens_.push_back(0);
      }
      require(home == number, where,
              "the group of sequence {} lies in mini-batches {} and {}, must lie in one", i, home,
              number);
      const std::int32_t unit = unit_of_group[group];
      unit_of_row_.push_back(unit);
      costs_[static_cast<std::size_t>(unit)] += sequences.costs[i];
      if (!sequences.lengths.empty()) {
        tokens_[static_cast<std::size_t>(unit)] += sequences.lengths[i];
      }
    }
    units_ = {.costs = costs_};
    if (!sequences.lengths.empty()) units_.tokens = tokens_;
  }

  [[nodiscard]] const Units& units() const { return units_; }
  [[nodiscard]] bool has_groups() const { return !unit_of_row_.empty(); }
  [[nodiscard]] std::size_t unit_of_row(std::size_t row) const {
    return has_groups() ? static_cast<std::size_t>(unit_of_row_[row]) : row;
  }
  [[nodiscard]] std::size_t num_rows() const {
    return has_groups() ? unit_of_row_.size() : units_.count();
  }
  [[nodiscard]] SequenceId sequence(std::size_t row) const {
    return SequenceId(first_ + static_cast<std::int32_t>(row));
  }

 private:
  std::int32_t first_;
  std::vector<Nanoseconds> costs_;         // of the groups
  std::vector<Tokens> tokens_;             // of the groups
  std::vector<std::int32_t> unit_of_row_;  // empty: row i is unit i
  Units units_;
};

// Why the capacity excludes every assignment, if it does so at sight.
std::optional<std::string> find_exclusion(const Block& block, std::int32_t ranks, Tokens capacity) {
  Tokens total = 0;
  for (std::size_t row = 0; row < block.num_rows(); ++row) {
    const Tokens tokens = block.units().tokens_of(block.unit_of_row(row));
    if (tokens > capacity) {
      return fmt::format("{} {} has {} tokens, a rank may hold {}",
                         block.has_groups() ? "the group of sequence" : "sequence",
                         block.sequence(row).value(), tokens, capacity);
    }
  }
  for (const Tokens tokens : block.units().tokens) total += tokens;
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

void append(const Block& block, const BinOf& bin_of, const Sequences& sequences, Order order,
            std::vector<std::vector<SequenceId>>& sequences_of_rank) {
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
  std::vector<std::int32_t> block_of_group(keeps_groups ? n : 0, -1);
  std::vector<std::int32_t> unit_of_group(keeps_groups ? n : 0, -1);
  std::int32_t number = 0;
  for (std::size_t first = 0; first < n; first += rows, ++number) {
    const std::size_t last = std::min(n, first + rows);
    const Block block = keeps_groups
                            ? Block(sequences, first, last, number, block_of_group, unit_of_group)
                            : Block(sequences, first, last);
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
    const Assignment assignment =
        assign(block.units(), ranks, limits, RefineGoal::largest, options.max_work);
    if (!assignment.bin_of) {
      return failure(assignment.is_proved ? Status::infeasible : Status::unknown,
                     fmt::format("no assignment of the sequences from {} on to {} ranks of {} "
                                 "tokens {}",
                                 first, ranks, options.capacity,
                                 assignment.is_proved ? "exists" : "was found"));
    }
    result.max_cost += assignment.max_cost;
    result.lower_bound += assignment.lower_bound;
    append(block, *assignment.bin_of, sequences, options.order, result.sequences_of_rank);
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
