#include "isochron/pack/pack.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/balance/unit_table.h"
#include "isochron/core/require.h"
#include "isochron/pack/fewest_bins.h"
#include "isochron/pack/first_fit.h"

namespace isochron {

namespace {

constexpr std::string_view where = "pack";
constexpr std::int64_t max_count = 1 << 24;  // micro-batches; more is a typing mistake

void check_inputs(const Sequences& sequences, const PackOptions& options) {
  require(options.capacity >= 1, where, "capacity is {}, must be at least 1", options.capacity);
  require(options.multiple >= 1, where, "multiple is {}, must be at least 1", options.multiple);
  require(options.min_count >= 0, where, "min_count is {}, must be at least 0", options.min_count);
  if (options.count) {
    const std::int32_t count = *options.count;
    require(count >= 1, where, "count is {}, must be at least 1", count);
    require(count % options.multiple == 0, where, "count is {}, must be a multiple of {}", count,
            options.multiple);
    require(count >= options.min_count, where, "count is {}, must be at least min_count, {}", count,
            options.min_count);
  }
  require(options.max_sequences >= 0, where, "max_sequences is {}, must be at least 0",
          options.max_sequences);
  require(options.oversize != Oversize::widen, where, "oversize is widen, must be error or alone");
  require(options.keep_groups != KeepGroups::rank, where,
          "keep_groups is rank, must be none or microbatch");
  require(!options.max_work || *options.max_work >= 0, where, "max_work is {}, must be at least 0",
          options.max_work.value_or(0));
  require(sequences.costs.size() <= static_cast<std::size_t>(max_length), where,
          "{} sequences, must be at most {}", sequences.costs.size(), max_length);
  check_costs(where, sequences.costs);
  check_lengths(where, sequences.lengths, sequences.costs.size());
  if (options.keep_groups == KeepGroups::microbatch) {
    check_groups(where, sequences.groups, sequences.costs.size());
  }
}

Packing failure(Status status, std::string reason) {
  Packing result;
  result.status = status;
  result.reason = std::move(reason);
  return result;
}

// The first units of a table: those that share micro-batches, and those over the capacity.
struct Selection {
  std::vector<std::int32_t> sharing;    // units
  std::vector<std::int32_t> oversized;  // units
  std::vector<Nanoseconds> costs;       // of `sharing`
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sizes;

  Selection(const Units& all, std::size_t num_units, Tokens capacity) {
    for (std::size_t unit = 0; unit < num_units; ++unit) {
      if (all.tokens_of(unit) > capacity) {
        oversized.push_back(static_cast<std::int32_t>(unit));
        continue;
      }
      sharing.push_back(static_cast<std::int32_t>(unit));
      costs.push_back(all.costs[unit]);
      tokens.push_back(all.tokens_of(unit));
      sizes.push_back(all.size_of(unit));
    }
  }

  [[nodiscard]] std::int64_t num_oversized() const { return std::ssize(oversized); }
  [[nodiscard]] Units units() const { return {.costs = costs, .tokens = tokens, .sizes = sizes}; }
};

std::int64_t max_size_of(const PackOptions& options) {
  return options.max_sequences == 0 ? Limits::unlimited : options.max_sequences;
}

// Why some unit fits no micro-batch, if one does.
std::optional<std::string> find_obstacle(const UnitTable& table, const PackOptions& options) {
  const Units& units = table.units();
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    if (units.size_of(unit) > max_size_of(options)) {
      return fmt::format("{} has {} sequences, a micro-batch may hold {}", table.name_of_unit(unit),
                         units.size_of(unit), options.max_sequences);
    }
    if (options.oversize == Oversize::error && units.tokens_of(unit) > options.capacity) {
      return fmt::format("{} has {} tokens, a micro-batch may hold {}", table.name_of_unit(unit),
                         units.tokens_of(unit), options.capacity);
    }
  }
  return std::nullopt;
}

// The number of micro-batches that the options make of `fewest`.
std::int64_t aligned_count(std::int64_t fewest, const PackOptions& options) {
  if (options.count) return *options.count;
  const std::int64_t least = std::max<std::int64_t>(fewest, options.min_count);
  return (least + options.multiple - 1) / options.multiple * options.multiple;
}

// As few micro-batches as the search finds, searching no further than the options can tell.
FewestBins fewest_of(const Selection& selection, const PackOptions& options) {
  const std::int64_t num_oversized = selection.num_oversized();
  const auto enough = [&](std::int32_t bound) {
    return aligned_count(bound + num_oversized, options) - num_oversized;
  };
  return fewest_bins(selection.units(), options.capacity, max_size_of(options), enough,
                     options.max_work);
}

// More bins out of the same packing: the dearest unit of the dearest bin that has two gets a bin of
// its own. There are at least `target` units.
void spread_over(std::int32_t target, const Units& units, FewestBins& packing) {
  std::vector<std::vector<std::pair<Nanoseconds, std::int32_t>>> bins(
      static_cast<std::size_t>(packing.num_bins));
  std::vector<Nanoseconds> costs(bins.size(), 0);
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    const auto bin = static_cast<std::size_t>(packing.bin_of[unit]);
    bins[bin].emplace_back(units.costs[unit], static_cast<std::int32_t>(unit));
    costs[bin] += units.costs[unit];
  }
  std::vector<std::pair<Nanoseconds, std::int32_t>> splittable;  // a heap of {cost, bin}
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    std::sort(bins[bin].begin(), bins[bin].end());
    if (bins[bin].size() > 1) splittable.emplace_back(costs[bin], static_cast<std::int32_t>(bin));
  }
  std::make_heap(splittable.begin(), splittable.end());
  while (packing.num_bins < target) {
    std::pop_heap(splittable.begin(), splittable.end());
    const auto [cost, number] = splittable.back();
    splittable.pop_back();
    auto& bin = bins[static_cast<std::size_t>(number)];
    const auto [unit_cost, unit] = bin.back();
    bin.pop_back();
    packing.bin_of[static_cast<std::size_t>(unit)] = packing.num_bins++;
    if (bin.size() > 1) {
      splittable.emplace_back(cost - unit_cost, number);
      std::push_heap(splittable.begin(), splittable.end());
    }
  }
}

// How many of the first units can be packed so that the counts hold without an empty micro-batch.
// A multiple m of them always can, each unit alone; of m and the units up to the next multiple the
// fewest bins decide, which grow with the units. 0: none.
std::int32_t droppable_to(const Units& all, std::int32_t num_units, const PackOptions& options) {
  if (options.count) return 0;
  const std::int32_t base = num_units / options.multiple * options.multiple;
  if (base == 0 || base < options.min_count) return 0;
  std::int32_t good = base;
  std::int32_t bad = num_units;
  while (bad - good > 1) {
    const std::int32_t middle = std::midpoint(good, bad);
    const Selection selection(all, static_cast<std::size_t>(middle), options.capacity);
    const FewestBins fewest = fewest_of(selection, options);
    (fewest.num_bins + selection.num_oversized() <= base ? good : bad) = middle;
  }
  return good;
}

// The sequences of each micro-batch, first the `num_shared` of shared units, then one for each
// oversized unit; what is in none is dropped.
void list_microbatches(const UnitTable& table, const Selection& selection, const BinOf& bin_of,
                       std::int32_t num_shared, Packing& result) {
  std::vector<std::int32_t> bin_of_unit(table.units().count(), -1);
  for (std::size_t i = 0; i < selection.sharing.size(); ++i) {
    bin_of_unit[static_cast<std::size_t>(selection.sharing[i])] = bin_of[i];
  }
  std::int32_t next_bin = num_shared;
  for (const std::int32_t unit : selection.oversized) {
    bin_of_unit[static_cast<std::size_t>(unit)] = next_bin++;
  }
  result.microbatches.resize(static_cast<std::size_t>(next_bin));
  for (std::size_t row = 0; row < table.num_rows(); ++row) {
    const std::int32_t bin = bin_of_unit[table.unit_of_row(row)];
    if (bin < 0) {
      result.dropped.push_back(table.sequence(row));
      continue;
    }
    result.microbatches[static_cast<std::size_t>(bin)].push_back(table.sequence(row));
    if (bin >= num_shared) result.oversized.push_back(table.sequence(row));
  }
}

void order_microbatches(const Sequences& sequences, Order order,
                        std::vector<std::vector<SequenceId>>& microbatches) {
  std::sort(microbatches.begin(), microbatches.end(),
            [](const auto& a, const auto& b) { return a.front() < b.front(); });
  if (order == Order::index) return;
  std::vector<Nanoseconds> costs;
  for (const auto& microbatch : microbatches) {
    Nanoseconds& cost = costs.emplace_back(0);
    for (const SequenceId id : microbatch) cost += sequences.costs[id.index()];
  }
  std::vector<std::vector<SequenceId>> ordered;
  ordered.reserve(microbatches.size());
  for (const std::size_t i : small_ends(costs)) ordered.push_back(std::move(microbatches[i]));
  microbatches = std::move(ordered);
}

}  // namespace

Packing pack(const Sequences& sequences, const PackOptions& options) {
  check_inputs(sequences, options);
  const UnitTable table(
      sequences, 0, sequences.costs.size(),
      options.keep_groups == KeepGroups::microbatch ? UnitKind::group : UnitKind::sequence);
  const Units& all = table.units();
  const auto num_all = static_cast<std::int32_t>(all.count());
  if (const auto obstacle = find_obstacle(table, options)) {
    return failure(Status::infeasible, *obstacle);
  }
  std::int32_t num_kept = num_all;
  Selection selection(all, all.count(), options.capacity);
  FewestBins fewest = fewest_of(selection, options);
  const std::int64_t wanted = aligned_count(fewest.num_bins + selection.num_oversized(), options);
  require(wanted <= max_count, where, "the options ask for {} micro-batches, must be at most {}",
          wanted, max_count);
  if (wanted > num_all && options.short_ != Short::empty) {
    const std::string shortage =
        fmt::format("{} {} cannot fill {} micro-batches", num_all,
                    options.keep_groups == KeepGroups::microbatch ? "groups" : "sequences", wanted);
    if (options.short_ == Short::error) {
      const bool is_proved =
          aligned_count(fewest.lower_bound + selection.num_oversized(), options) > num_all;
      return is_proved
                 ? failure(Status::infeasible, shortage)
                 : failure(Status::unknown, shortage + ", and no packing into fewer was found");
    }
    num_kept = droppable_to(all, num_all, options);
    if (num_kept == 0) return failure(Status::infeasible, shortage + ", nor can fewer");
    selection = Selection(all, static_cast<std::size_t>(num_kept), options.capacity);
    fewest = fewest_of(selection, options);
  }

  const std::int64_t num_oversized = selection.num_oversized();
  const std::int64_t count = aligned_count(fewest.num_bins + num_oversized, options);
  if (options.count && fewest.lower_bound + num_oversized > count) {
    return failure(Status::infeasible,
                   fmt::format("count is {}, the sequences need at least {} micro-batches", count,
                               fewest.lower_bound + num_oversized));
  }
  if (fewest.num_bins + num_oversized > count) {
    return failure(Status::unknown,
                   fmt::format("no packing into {} micro-batches was found, one into {} was", count,
                               fewest.num_bins + num_oversized));
  }

  Packing result;
  result.lower_bound =
      static_cast<std::int32_t>(aligned_count(fewest.lower_bound + num_oversized, options));
  const std::int64_t num_empty = std::max<std::int64_t>(0, count - num_kept);
  const auto num_shared = static_cast<std::int32_t>(count - num_oversized - num_empty);
  const Units units = selection.units();
  BinOf bin_of;
  if (num_shared > 0) {
    spread_over(num_shared, units, fewest);
    const Limits limits{
        .capacity = options.capacity, .max_size = max_size_of(options), .min_units = 1};
    Assignment assignment = assign(units, num_shared, limits, RefineGoal::spread, options.max_work,
                                   std::move(fewest.bin_of));
    bin_of = std::move(*assignment.bin_of);
    result.max_cost = assignment.max_cost;
    result.max_cost_bound = assignment.lower_bound;
  }

  for (const std::int32_t unit : selection.oversized) {
    const Nanoseconds cost = all.costs[static_cast<std::size_t>(unit)];
    result.max_cost = std::max(result.max_cost, cost);
    result.max_cost_bound = std::max(result.max_cost_bound, cost);
  }
  list_microbatches(table, selection, bin_of, num_shared, result);
  order_microbatches(sequences, options.order, result.microbatches);
  result.microbatches.resize(static_cast<std::size_t>(count));
  result.status = count == result.lower_bound && result.max_cost == result.max_cost_bound
                      ? Status::optimal
                      : Status::feasible;
  return result;
}

Packing pack(std::span<const Tokens> lengths, std::span<const Nanoseconds> costs,
             const PackOptions& options) {
  return pack(Sequences{.lengths = lengths, .costs = costs}, options);
}

std::int32_t microbatch_count(std::span<const Tokens> lengths, Tokens capacity) {
  require(capacity >= 1, "microbatch_count", "capacity is {}, must be at least 1", capacity);
  check_lengths("microbatch_count", lengths, lengths.size());
  std::vector<Tokens> fitting;
  fitting.reserve(lengths.size());
  std::copy_if(lengths.begin(), lengths.end(), std::back_inserter(fitting),
               [&](Tokens length) { return length <= capacity; });
  const Units units{.costs = fitting, .tokens = fitting};
  return first_fit_decreasing(units, capacity, Limits::unlimited).num_bins +
         static_cast<std::int32_t>(lengths.size() - fitting.size());
}

}  // namespace isochron
