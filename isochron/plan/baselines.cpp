// Both deal sequences to static groups of ranks and let each group pack for itself. verl's groups
// agree on their count by all-reduces in the middle of the rule: they are played one round at a
// time, every group from its start up to its next all-reduce, until none has another one.

#include "isochron/plan/baselines.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "isochron/balance/karmarkar_karp.h"
#include "isochron/core/require.h"
#include "isochron/pack/verl_microbatches.h"
#include "isochron/pad/pad.h"
#include "isochron/plan/plan_slots.h"

namespace isochron {

namespace {

constexpr std::string_view where = "plan";

using Piece = std::vector<SequenceId>;  // stands in one micro-batch as a whole
using Microbatches = std::vector<std::vector<Piece>>;

// A baseline before it is decided who runs what.
struct Start {
  StepPlan plan;
  std::vector<Tokens> lengths;  // with those of the padding rows
  std::vector<Tokens> padded;   // tokens that a sequence takes of the capacity of its group
  // What goes to the same group of ranks: the pieces of a kept prompt group, or one sequence.
  std::vector<std::vector<Piece>> units;
  std::int32_t group_size = 1;
  std::int32_t num_groups = 1;
  Tokens group_capacity = 0;
};

bool is_admissible(const CostModel& cost, std::int32_t ranks, std::int32_t size) {
  if (size == 1) return true;
  for (std::int32_t first = 0; first < ranks; first += size) {
    const bool has_link =
        std::any_of(cost.context.begin(), cost.context.end(), [&](const ContextCost& context) {
          return find_link(context, {.first = first, .size = size}).has_value();
        });
    if (!has_link) return false;
  }
  return true;
}

// The units of a plan whose padding rows are known. Groups are numbered by first occurrence, so
// that units are in the order of the input.
std::vector<std::vector<Piece>> units_of(const StepPlan& plan, KeepGroups keep) {
  const std::size_t num_real = plan.batch.lengths.size();
  const std::size_t num_all = num_real + static_cast<std::size_t>(plan.padding_rows);
  std::vector<std::vector<Piece>> units;
  for (std::size_t i = 0; i < num_all; ++i) {
    const SequenceId id(static_cast<std::int32_t>(i));
    const bool is_kept = keep != KeepGroups::none && i < num_real;  // padding rows have no prompt
    const std::size_t unit = is_kept ? plan.batch.groups[i].index() : units.size();
    if (unit == units.size()) units.emplace_back();
    if (is_kept && keep == KeepGroups::microbatch && !units[unit].empty()) {
      units[unit].front().push_back(id);
    } else {
      units[unit].push_back({id});
    }
  }
  return units;
}

// Of a group; no more than what all lengths add up to at most.
Tokens capacity_of(const Topology& topology, std::int32_t size) {
  return std::min(topology.capacity, max_total_cost / max_ranks) * size;
}

bool holds_all(const Start& start, std::int32_t size) {
  const Tokens capacity = capacity_of(start.plan.topology, size);
  const auto fits = [&](const Piece& piece) {
    Tokens tokens = 0;
    for (const SequenceId id : piece) {
      tokens += padded_length(start.lengths[id.index()], size, start.plan.options.tensor_parallel);
    }
    return tokens <= capacity;
  };
  return std::all_of(start.units.begin(), start.units.end(),
                     [&](const auto& unit) { return std::all_of(unit.begin(), unit.end(), fits); });
}

// The smallest size that holds every piece, or else the largest there is.
std::int32_t static_size(const Start& start) {
  const std::int32_t ranks = start.plan.topology.ranks;
  std::int32_t largest = 1;
  for (std::int32_t size = 1; size <= ranks; ++size) {
    if (ranks % size != 0 || !is_admissible(start.plan.cost, ranks, size)) continue;
    largest = size;
    if (holds_all(start, size)) return size;
  }
  return largest;
}

// `keep`: what the baseline keeps together, whatever the options ask for.
Start start_of(const Batch& batch, const Topology& topology, const CostModel& cost,
               const PlanOptions& options, Nanoseconds lower_bound_ns, KeepGroups keep) {
  require(!batch.lengths.empty(), where, "the batch is empty, must have a sequence");
  require(options.keep_groups == KeepGroups::none || !batch.groups.empty(), where,
          "keep_groups is {}, but the batch has no groups", name_of(options.keep_groups));
  require_valid(cost);
  Start start;
  StepPlan& plan = start.plan;
  plan.topology = topology;
  plan.options = resolved(options, topology);
  plan.cost = cost;
  plan.batch = batch;
  plan.lower_bound_ns = lower_bound_ns;
  if (plan.options.pad == Pad::rows) {
    plan.padding_rows = static_cast<std::int32_t>(num_padding_rows(
        static_cast<std::int64_t>(batch.lengths.size()), plan.options.pad_multiple));
  }
  start.lengths = all_lengths(plan);
  start.units = units_of(plan, keep);

  const ContextMode mode = context_mode(options.context);
  start.group_size = mode.kind == ContextMode::Kind::fixed ? mode.size : static_size(start);
  start.num_groups = topology.ranks / start.group_size;
  start.group_capacity = capacity_of(topology, start.group_size);
  for (const Tokens length : start.lengths) {
    start.padded.push_back(padded_length(length, start.group_size, options.tensor_parallel));
  }

  plan.options.context = fmt::format("static:{}", start.group_size);
  plan.options.min_context_size = 1;
  plan.options.max_context_size = 0;
  if (plan.options.oversize == Oversize::widen) plan.options.oversize = Oversize::error;
  return start;
}

Slot slot_of(const Start& start, const std::vector<Microbatches>& microbatches_of_group,
             std::size_t index) {
  Slot slot;
  for (std::size_t i = 0; i < microbatches_of_group.size(); ++i) {
    const RankRange ranks = {.first = static_cast<std::int64_t>(i) * start.group_size,
                             .size = start.group_size};
    if (index < microbatches_of_group[i].size()) {
      ContextGroup group = {.ranks = ranks, .sequences = {}};
      for (const Piece& piece : microbatches_of_group[i][index]) {
        group.sequences.insert(group.sequences.end(), piece.begin(), piece.end());
      }
      std::sort(group.sequences.begin(), group.sequences.end());
      group.exchange = cheapest_exchange(start.plan, group);
      slot.push_back(std::move(group));
    } else if (start.plan.options.counts == Counts::equal) {
      for (std::int64_t rank = ranks.first; rank < ranks.first + ranks.size; ++rank) {
        slot.push_back({.ranks = {.first = rank, .size = 1}, .sequences = {}});
      }
    }
  }
  return slot;
}

// Cuts the micro-batch with the most pieces in two until there are `count`, or nothing to cut.
void cut_up_to(Microbatches& microbatches, std::size_t count) {
  while (microbatches.size() < count && !microbatches.empty()) {
    const auto most =
        std::max_element(microbatches.begin(), microbatches.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (most->size() < 2) return;
    const auto middle = most->begin() + static_cast<std::ptrdiff_t>(most->size() + 1) / 2;
    std::vector<Piece> second(middle, most->end());
    most->erase(middle, most->end());
    microbatches.insert(std::next(most), std::move(second));
  }
}

Tokens padded_tokens(const Start& start, const Piece& piece) {
  Tokens tokens = 0;
  for (const SequenceId id : piece) tokens += start.padded[id.index()];
  return tokens;
}

StepPlan finished(Start start, std::vector<Microbatches> microbatches_of_group) {
  StepPlan& plan = start.plan;
  const PipelineShape& shape = plan.topology.pipeline;
  std::size_t num_slots = 0;
  for (const auto& microbatches : microbatches_of_group) {
    num_slots = std::max(num_slots, microbatches.size());
  }
  const auto multiple = static_cast<std::size_t>(shape.group);
  num_slots = (num_slots + multiple - 1) / multiple * multiple;
  if (plan.options.counts == Counts::equal) {
    for (auto& microbatches : microbatches_of_group) cut_up_to(microbatches, num_slots);
  }
  for (std::size_t i = 0; i < num_slots; ++i) {
    plan.microbatches.push_back(slot_of(start, microbatches_of_group, i));
  }
  if (plan.options.oversize == Oversize::alone) {
    for (const auto& unit : start.units) {
      for (const Piece& piece : unit) {
        if (padded_tokens(start, piece) <= start.group_capacity) continue;
        plan.oversized.insert(plan.oversized.end(), piece.begin(), piece.end());
      }
    }
    std::sort(plan.oversized.begin(), plan.oversized.end());
  }
  set_prediction(plan);
  if (plan.lower_bound_ns > plan.predicted_step_ns) plan.lower_bound_ns = 0;
  plan.status = plan.predicted_step_ns == plan.lower_bound_ns ? Status::optimal : Status::feasible;
  return std::move(start.plan);
}

// A micro-batch is closed when the next piece has no room.
Microbatches next_fit(const Start& start, const std::vector<Piece>& pieces) {
  const auto most = static_cast<std::size_t>(start.plan.options.max_sequences);
  Microbatches microbatches;
  Tokens filled = 0;
  std::size_t num_sequences = 0;
  for (const Piece& piece : pieces) {
    const Tokens tokens = padded_tokens(start, piece);
    const bool is_full = microbatches.empty() || filled + tokens > start.group_capacity ||
                         (most > 0 && num_sequences + piece.size() > most);
    if (is_full) {
      microbatches.emplace_back();
      filled = 0;
      num_sequences = 0;
    }
    filled += tokens;
    num_sequences += piece.size();
    microbatches.back().push_back(piece);
  }
  return microbatches;
}

// The order in which verl hands a rank its sequences: ascending by (workload, index), even
// positions first, then the odd ones backwards.
std::vector<SequenceId> verl_order(std::vector<SequenceId> sequences,
                                   std::span<const std::int64_t> workloads) {
  std::sort(sequences.begin(), sequences.end(), [&](SequenceId a, SequenceId b) {
    const std::int64_t first = workloads[a.index()];
    const std::int64_t second = workloads[b.index()];
    return first != second ? first < second : a < b;
  });
  std::vector<SequenceId> ordered;
  for (std::size_t i = 0; i < sequences.size(); i += 2) ordered.push_back(sequences[i]);
  const auto num_even = static_cast<std::ptrdiff_t>(ordered.size());
  for (std::size_t i = 1; i < sequences.size(); i += 2) ordered.push_back(sequences[i]);
  std::reverse(ordered.begin() + num_even, ordered.end());
  return ordered;
}

// All groups run the rule; an all-reduce gives each the largest number over all of them.
std::vector<std::vector<std::vector<SequenceId>>> agreed_microbatches(
    const std::vector<std::vector<Tokens>>& lengths, const VerlMicrobatchOptions& options) {
  struct NextRound {};
  std::vector<std::vector<std::int64_t>>
      agreed;  // numbers of each all-reduce that all have reached
  while (true) {
    std::vector<std::int64_t> next;
    std::vector<std::vector<std::vector<SequenceId>>> result;
    for (const std::vector<Tokens>& own : lengths) {
      std::size_t round = 0;
      const auto all_reduce_max = [&](std::span<std::int64_t> numbers) {
        if (round < agreed.size()) {
          std::copy(agreed[round].begin(), agreed[round].end(), numbers.begin());
          ++round;
          return;
        }
        next.resize(numbers.size(), std::numeric_limits<std::int64_t>::min());
        for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::max(next[i], numbers[i]);
        throw NextRound();
      };
      try {
        result.push_back(verl_microbatches(own, options, {.all_reduce_max = all_reduce_max}));
      } catch (const NextRound&) {
      }
    }
    if (result.size() == lengths.size()) return result;
    ISOCHRON_ASSERT(result.empty());  // what is agreed decides whether there is another round
    agreed.push_back(next);
  }
}

std::vector<Microbatches> verl_microbatches_of_groups(const Start& start) {
  std::vector<std::int64_t> workloads;
  for (const Tokens length : start.lengths) workloads.push_back(verl_workload(length));
  if (workloads.size() % static_cast<std::size_t>(start.num_groups) != 0) {
    throw PeerAssertionError(fmt::format("{} % {} != 0", workloads.size(), start.num_groups));
  }
  std::vector<std::vector<SequenceId>> ids_of_group;
  std::vector<std::vector<Tokens>> lengths_of_group;
  for (auto& part : balanced_partitions(workloads, start.num_groups, PartSizes::equal)) {
    ids_of_group.push_back(verl_order(std::move(part), workloads));
    auto& lengths = lengths_of_group.emplace_back();
    for (const SequenceId id : ids_of_group.back()) lengths.push_back(start.padded[id.index()]);
  }
  VerlMicrobatchOptions options = {.max_token_len = start.group_capacity};
  const PipelineShape& shape = start.plan.topology.pipeline;
  if (shape.virtual_ > 1) options.num_batches_divided_by = shape.group;
  const auto places_of_group = agreed_microbatches(lengths_of_group, options);
  std::vector<Microbatches> microbatches_of_group(places_of_group.size());
  for (std::size_t i = 0; i < places_of_group.size(); ++i) {
    for (const auto& places : places_of_group[i]) {
      auto& microbatch = microbatches_of_group[i].emplace_back();
      for (const SequenceId place : places) {
        microbatch.push_back({ids_of_group[i][place.index()]});
      }
    }
  }
  return microbatches_of_group;
}

}  // namespace

StepPlan naive_plan(const Batch& batch, const Topology& topology, const CostModel& cost,
                    const PlanOptions& options, Nanoseconds lower_bound_ns) {
  Start start = start_of(batch, topology, cost, options, lower_bound_ns, options.keep_groups);
  start.plan.options.balance = false;
  std::vector<std::vector<Piece>> dealt(static_cast<std::size_t>(start.num_groups));
  for (std::size_t i = 0; i < start.units.size(); ++i) {
    auto& pieces = dealt[i % dealt.size()];
    pieces.insert(pieces.end(), start.units[i].begin(), start.units[i].end());
  }
  std::vector<Microbatches> microbatches_of_group;
  for (const auto& pieces : dealt) microbatches_of_group.push_back(next_fit(start, pieces));
  return finished(std::move(start), std::move(microbatches_of_group));
}

StepPlan verl_plan(const Batch& batch, const Topology& topology, const CostModel& cost,
                   const PlanOptions& options, Nanoseconds lower_bound_ns) {
  Start start = start_of(batch, topology, cost, options, lower_bound_ns, KeepGroups::none);
  try {
    return finished(start, verl_microbatches_of_groups(start));
  } catch (const PeerAssertionError& error) {
    start.plan.reason = error.what();
  } catch (const PeerValueError& error) {
    start.plan.reason = error.what();
  }
  start.plan.status = Status::unknown;
  start.plan.peak_activation_bytes.assign(static_cast<std::size_t>(topology.ranks), 0);
  return std::move(start.plan);
}

}  // namespace isochron
