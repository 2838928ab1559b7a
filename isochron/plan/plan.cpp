// Policies first, then a search for the mode, then the plan as data.
//
// Whatever the mode, the search leaves groups in slots; what simulate() says of them is predicted.

#include "isochron/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"
#include "isochron/core/sequences.h"
#include "isochron/pad/pad.h"
#include "isochron/plan/anneal.h"
#include "isochron/plan/bounds.h"
#include "isochron/plan/deal.h"
#include "isochron/plan/equal_search.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/pipeline_bound.h"
#include "isochron/plan/pipeline_search.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slot_search.h"
#include "isochron/plan/slots.h"
#include "isochron/plan/step_search.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

constexpr std::string_view where = "plan";

StepPlan without_answer(StepPlan plan, Status status, std::string reason) {
  plan.status = status;
  plan.reason = std::move(reason);
  plan.microbatches.clear();
  plan.oversized.clear();
  plan.dropped.clear();
  plan.predicted_step_ns = 0;
  plan.lower_bound_ns = 0;
  plan.imbalance = 1;
  plan.peak_activation_bytes.assign(static_cast<std::size_t>(plan.topology.ranks), 0);
  return plan;
}

// Sequences, or prompt groups where they are kept together.
std::size_t num_units(const StepPlan& plan) {
  return plan.options.keep_groups == KeepGroups::none ? plan.batch.lengths.size()
                                                      : plan.batch.group_names.size();
}
std::size_t unit_of(const StepPlan& plan, std::size_t sequence) {
  return plan.options.keep_groups == KeepGroups::none ? sequence
                                                      : plan.batch.groups[sequence].index();
}

// Items and bundles of the first `num_kept` units and all padding rows.
Work work_of(const StepPlan& plan, std::size_t num_kept) {
  Work work;
  work.lengths = all_lengths(plan);
  work.extra_costs = plan.batch.extra_cost_ns;
  if (!work.extra_costs.empty()) work.extra_costs.resize(work.lengths.size(), 0);
  const std::size_t num_rows = plan.batch.lengths.size();
  std::vector<std::int32_t> place_of_group(plan.batch.group_names.size(), -1);
  const KeepGroups keep = plan.options.keep_groups;
  for (std::size_t i = 0; i < work.lengths.size(); ++i) {
    if (i < num_rows && unit_of(plan, i) >= num_kept) continue;
    const SequenceId id(static_cast<std::int32_t>(i));
    const bool is_kept = keep != KeepGroups::none && i < num_rows;
    std::int32_t* place = is_kept ? &place_of_group[plan.batch.groups[i].index()] : nullptr;
    if (place != nullptr && *place >= 0) {
      if (keep == KeepGroups::microbatch) {
        work.items[static_cast<std::size_t>(*place)].push_back(id);
      } else {
        work.bundles[static_cast<std::size_t>(*place)].push_back(
            static_cast<ItemId>(work.items.size()));
        work.items.push_back({id});
      }
      continue;
    }
    if (place != nullptr) {
      *place = static_cast<std::int32_t>(keep == KeepGroups::microbatch ? work.items.size()
                                                                        : work.bundles.size());
    }
    work.bundles.push_back({static_cast<ItemId>(work.items.size())});
    work.items.push_back({id});
  }
  return work;
}

// What an item is called in a reason.
std::string item_text(const StepPlan& plan, const std::vector<SequenceId>& item) {
  if (item.size() == 1) {
    const std::size_t i = item.front().index();
    const Tokens length =
        i < plan.batch.lengths.size() ? plan.batch.lengths[i] : padding_row_length;
    return fmt::format("sequence {} of {} tokens", i, length);
  }
  Tokens tokens = 0;
  for (const SequenceId id : item) tokens += plan.batch.lengths[id.index()];
  return fmt::format("the group of sequence {}, {} sequences of {} tokens,", item.front().value(),
                     item.size(), tokens);
}

// Marks what fits no group, or says why there is no plan.
std::optional<std::string> apply_oversize(const StepPlan& plan, Problem& problem) {
  const PlanOptions& options = plan.options;
  const bool is_dynamic = context_mode(options.context).kind != ContextMode::Kind::fixed;
  if (problem.sizes().empty() && (!is_dynamic || options.oversize != Oversize::alone)) {
    return fmt::format("the cost model admits no group that context {} allows", options.context);
  }
  const std::int32_t widest = problem.sizes().empty() ? 0 : problem.sizes().back();
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const auto& ids = problem.work().items[static_cast<std::size_t>(item)];
    const auto sizes = problem.sizes();
    if (std::any_of(sizes.begin(), sizes.end(),
                    [&](std::int32_t size) { return problem.item_fits(size, item); })) {
      continue;
    }
    if (options.max_sequences > 0 &&
        static_cast<std::int64_t>(ids.size()) > options.max_sequences) {
      return fmt::format("{} exceeds max_sequences {}", item_text(plan, ids),
                         options.max_sequences);
    }
    if (options.oversize != Oversize::alone) {
      return fmt::format(
          "{} needs more than the capacity {} on each of {} ranks, the most that a "
          "group may have",
          item_text(plan, ids), plan.topology.capacity, widest);
    }
    // On all ranks where sizes are dynamic, whatever the largest size.
    const std::int32_t alone_size = is_dynamic ? plan.topology.ranks : widest;
    if (problem.cheapest_price(alone_size) < 0) {
      return fmt::format(
          "{} exceeds the capacity {} and cannot run alone: the cost model has no "
          "exchange for all {} ranks",
          item_text(plan, ids), plan.topology.capacity, plan.topology.ranks);
    }
    problem.set_alone(item, alone_size);
  }
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto sizes = problem.sizes();
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](std::int32_t size) { return problem.fits(size, bundle); })) {
      const ItemId first = problem.items_of(bundle).front();
      return fmt::format("no group of ranks can run all sequences of the group of {}",
                         item_text(plan, problem.work().items[static_cast<std::size_t>(first)]));
    }
  }
  return std::nullopt;
}

// What an item alone holds at least on its fullest stage, on whichever group: at its last chunk, in
// a training pass, all chunks of a stage hold it.
std::int64_t least_bytes(const StepPlan& plan, const Problem& problem, ItemId item) {
  const PipelineShape& shape = plan.topology.pipeline;
  std::vector<std::int32_t> sizes(problem.sizes().begin(), problem.sizes().end());
  const bool is_fixed = context_mode(plan.options.context).kind == ContextMode::Kind::fixed;
  if (plan.options.oversize == Oversize::alone && !is_fixed) sizes.push_back(plan.topology.ranks);
  std::int64_t least = max_total_cost + 1;
  for (const std::int32_t size : sizes) {
    Tokens tokens = 0;
    for (const SequenceId id : problem.work().items[static_cast<std::size_t>(item)]) {
      tokens +=
          padded_length(problem.work().lengths[id.index()], size, plan.options.tensor_parallel);
    }
    const Tokens tokens_per_rank = tokens / size;
    const double bytes =
        static_cast<double>(tokens_per_rank) * plan.cost.activation_bytes_per_token;
    Int128 fullest = 0;
    for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
      Int128 held = 0;
      for (std::int32_t chunk = stage; chunk < shape.num_chunks(); chunk += shape.stages) {
        const std::int64_t part = chunk_bytes(shape, bytes, chunk);
        held = plan.options.pass == Pass::train ? held + part : std::max<Int128>(held, part);
      }
      fullest = std::max(fullest, held);
    }
    least = static_cast<std::int64_t>(std::min<Int128>(least, fullest));
  }
  return least;
}

// Why no plan keeps max_activation_bytes; none if no item alone breaks it.
std::optional<std::string> find_memory_obstacle(const StepPlan& plan, const Problem& problem) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  for (ItemId item = 0; limit > 0 && item < problem.num_items(); ++item) {
    const std::int64_t least = least_bytes(plan, problem, item);
    if (least <= limit) continue;
    return fmt::format(
        "{} holds at least {} activation bytes on a stage, max_activation_bytes is {}",
        item_text(plan, problem.work().items[static_cast<std::size_t>(item)]), least, limit);
  }
  return std::nullopt;
}

// Without stages a limit on activations is one on the tokens of a micro-batch.
Topology within_memory(const StepPlan& plan) {
  Topology topology = plan.topology;
  const double limit = static_cast<double>(plan.options.max_activation_bytes);
  const double bytes = plan.cost.activation_bytes_per_token;
  if (limit == 0 || bytes <= 0 || topology.pipeline.stages > 1) return topology;
  const double tokens = std::floor((limit + 0.5) / bytes);
  if (tokens >= static_cast<double>(topology.capacity)) return topology;
  topology.capacity = static_cast<Tokens>(tokens);
  const auto is_over = [&] {
    return std::llround(static_cast<double>(topology.capacity) * bytes) >
           plan.options.max_activation_bytes;
  };
  while (topology.capacity > 1 && is_over()) --topology.capacity;
  topology.capacity = std::max<Tokens>(1, topology.capacity);
  return topology;
}

// Bytes over max_activation_bytes.
std::int64_t memory_excess(const StepPlan& plan) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  const auto& peaks = plan.peak_activation_bytes;
  const std::int64_t fullest = *std::max_element(peaks.begin(), peaks.end());
  return limit == 0 ? 0 : std::max<std::int64_t>(0, fullest - limit);
}

// What a few milliseconds for a thousand sequences allow: a step is a matter of balance, slots are
// one of packing, which takes more.
std::int64_t default_effort(const Problem& problem) {
  const auto count = static_cast<std::int64_t>(problem.num_items());
  const bool is_packing = problem.options().sync == Sync::microbatch;
  return is_packing ? 60'000 + 100 * count : 30'000 + 40 * count;
}

// A bound of the training pass as one of the pass at hand.
Nanoseconds bound_of_pass(const StepPlan& plan, const Problem& problem, Nanoseconds bound) {
  // Those of several stages are of the pass already.
  if (plan.options.pass == Pass::train || plan.topology.pipeline.stages > 1) return bound;
  // Every micro-batch rounds its forward part once, down by half a nanosecond at most.
  const double forward = plan.cost.forward_share * static_cast<double>(bound);
  const double rounding = 1 + 0.5 * problem.num_items() + forward * 1e-12;
  return std::max<Nanoseconds>(0, static_cast<Nanoseconds>(forward - rounding));
}

void set_oversized(const Problem& problem, StepPlan& plan) {
  plan.oversized.clear();
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.is_alone(item)) continue;
    const auto& ids = problem.work().items[static_cast<std::size_t>(item)];
    plan.oversized.insert(plan.oversized.end(), ids.begin(), ids.end());
  }
  std::sort(plan.oversized.begin(), plan.oversized.end());
}

// What stands alone in one question does in another that differs in its options.
void copy_alone(const Problem& from, Problem& to) {
  for (ItemId item = 0; item < from.num_items(); ++item) {
    if (from.is_alone(item)) to.set_alone(item, from.alone_size());
  }
}

// The same question with aligned groups: what answers it answers dynamic:any too.
std::unique_ptr<Problem> find_aligned(const Problem& problem) {
  if (problem.is_aligned()) return nullptr;
  PlanOptions options = problem.options();
  options.context = "dynamic";
  auto aligned =
      std::make_unique<Problem>(problem.work(), problem.topology(), problem.model(), options);
  copy_alone(problem, *aligned);
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto sizes = aligned->sizes();
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](std::int32_t size) { return aligned->fits(size, bundle); })) {
      return nullptr;
    }
  }
  return aligned;
}

Draft search_free_step(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  const auto aligned = find_aligned(problem);
  if (!aligned) return search_step(problem, bound, effort);
  const auto exact = find_exact_step(*aligned);
  Draft nested = exact ? *exact : search_step(*aligned, bound, effort / 2);
  Draft crossing = search_step(problem, bound, effort / 2);
  return crossing.time < nested.time ? crossing : nested;
}

DraftSlots search_free_slots(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  const auto aligned = find_aligned(problem);
  if (!aligned) return search_slots(problem, bound, effort).slots;
  SlotDraft nested = search_slots(*aligned, bound, effort / 2);
  SlotDraft crossing = search_slots(problem, bound, effort / 2);
  return crossing.time < nested.time ? crossing.slots : nested.slots;
}

DraftSlots search(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                  Nanoseconds& bound) {
  const PlanOptions& options = plan.options;
  if (plan.topology.pipeline.stages > 1) {
    bound = pipeline_bound(problem);
    return search_pipeline(problem, plan, bound, effort);
  }
  if (options.sync == Sync::microbatch) {
    if (auto exact = find_exact_slots(problem)) {
      bound = exact->time;
      equalize(problem, 1, exact->slots);
      return exact->slots;
    }
    bound = slot_bound(problem);
    DraftSlots slots;
    if (options.keep_groups == KeepGroups::rank || problem.has_speeds()) {
      slots = search_kept_slots(problem, bound, effort);  // every rank has its own pace, or its own
    }
    if (options.keep_groups != KeepGroups::rank) {
      DraftSlots free = search_free_slots(problem, bound, effort);
      if (slots.empty() || slots_time(problem, free) < slots_time(problem, slots)) {
        slots = std::move(free);
      }
    }
    const Nanoseconds before = slots_time(problem, slots);
    equalize(problem, 1, slots);
    const Nanoseconds after = slots_time(problem, slots);
    if (after > before + before / 100 && options.keep_groups == KeepGroups::none) {
      // Ranks that idle got what does not suit them: micro-batches of one sequence leave them
      // alone.
      PlanOptions single = options;
      single.max_sequences = 1;
      Problem apart(problem.work(), problem.topology(), problem.model(), single);
      copy_alone(problem, apart);
      DraftSlots other = search_free_slots(apart, bound, effort);
      equalize(problem, 1, other);
      if (slots_time(problem, other) < after) return other;
    }
    return slots;
  }
  if (options.counts == Counts::free) {
    if (const auto exact = find_exact_step(problem)) {
      bound = exact->time;
      return slots_of(problem, *exact);
    }
    bound = step_bound(problem);
    return slots_of(problem, search_free_step(problem, bound, effort));
  }
  bound = std::max(step_bound(problem), equal_count_bound(problem));
  return search_equal_step(problem, bound, effort);
}

bool is_polished(const Problem& problem) {
  constexpr std::int32_t max_items = 24;
  constexpr std::int32_t max_ranks_here = 64;
  return problem.num_items() <= max_items && problem.num_ranks() <= max_ranks_here;
}

// Few items are worth a second look: annealing finds what the searches, made for many, miss.
DraftSlots polished(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                    std::int64_t effort, Nanoseconds bound) {
  if (!is_polished(problem)) return slots;
  const PlanOptions& options = plan.options;
  const PipelineShape& shape = plan.topology.pipeline;
  const std::int32_t multiple = shape.virtual_ > 1 ? shape.group : 1;
  StepPlan trial = plan;
  const auto time_of_equal = [&](const DraftSlots& filled) {
    if (shape.stages == 1) {
      return options.sync == Sync::microbatch ? slots_time(problem, filled)
                                              : step_time(problem, filled);
    }
    set_slots(problem, filled, trial);
    set_prediction(trial);
    const std::int64_t excess = memory_excess(trial);
    // Slower than all that keep the limit, the less it is broken the better.
    return excess == 0 ? trial.predicted_step_ns
                       : max_total_cost / 2 + std::min(excess, max_total_cost / 4);
  };
  const auto time = [&](const Draft& draft) {
    if (options.counts == Counts::free) return step_time(problem, draft);
    DraftSlots filled = slots_of(problem, draft);
    equalize(problem, multiple, filled);
    return time_of_equal(filled);
  };
  // A trial plays the step once.
  const std::int64_t cost = 1 + problem.num_items() * shape.num_chunks() / 4;
  DraftSlots annealed = anneal(problem, slots, bound, effort / cost, time);
  if (options.counts == Counts::free) return annealed;
  equalize(problem, multiple, annealed);
  // Annealing knows no placeholders: it begins with what is left of the slots without them.
  return time_of_equal(slots) < time_of_equal(annealed) ? slots : annealed;
}

// The same question on groups of one size; none if they do not hold everything.
std::unique_ptr<Problem> with_static_size(const StepPlan& plan, const Problem& problem,
                                          std::int32_t size) {
  PlanOptions options = plan.options;
  options.context = fmt::format("static:{}", size);
  options.min_context_size = 1;
  options.max_context_size = 0;
  if (options.oversize == Oversize::widen) options.oversize = Oversize::error;
  auto fixed = std::make_unique<Problem>(problem.work(), problem.topology(), plan.cost, options);
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.item_fits(size, item)) return nullptr;
    if (problem.is_alone(item)) fixed->set_alone(item, size);
  }
  return problem.num_ranks() % size == 0 && !fixed->sizes().empty() ? std::move(fixed) : nullptr;
}

// What the search finds, polished. Pipelines of few sequences with groups of any size are also
// planned with each static size by itself: there annealing gets further.
DraftSlots best_slots(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                      Nanoseconds& bound) {
  DraftSlots best = search(plan, problem, effort, bound);
  best = polished(plan, problem, std::move(best), effort, bound_of_pass(plan, problem, bound));
  const bool is_fixed = context_mode(plan.options.context).kind == ContextMode::Kind::fixed;
  if (plan.topology.pipeline.stages == 1 || is_fixed || !is_polished(problem)) return best;
  StepPlan trial = plan;
  const auto score = [&](const DraftSlots& slots) {
    set_slots(problem, slots, trial);
    set_prediction(trial);
    return std::pair(memory_excess(trial), trial.predicted_step_ns);
  };
  auto least = score(best);
  for (const std::int32_t size : problem.sizes()) {
    const auto fixed = with_static_size(plan, problem, size);
    if (fixed == nullptr) continue;
    const Nanoseconds fixed_bound = pipeline_bound(*fixed);
    if (least.first == 0 && least.second <= fixed_bound) continue;
    DraftSlots slots = search_pipeline(*fixed, plan, fixed_bound, effort);
    slots = polished(plan, *fixed, std::move(slots), effort, fixed_bound);
    if (const auto found = score(slots); found < least) {
      least = found;
      best = std::move(slots);
    }
  }
  return best;
}

// Where a limit on activations makes no difference, none is kept in mind on the way.
DraftSlots best_slots_within_memory(const StepPlan& plan, const Problem& problem,
                                    std::int64_t effort, Nanoseconds& bound) {
  if (plan.options.max_activation_bytes > 0 && plan.topology.pipeline.stages > 1) {
    StepPlan unlimited = plan;
    unlimited.options.max_activation_bytes = 0;
    Problem same(problem.work(), problem.topology(), plan.cost, unlimited.options);
    for (ItemId item = 0; item < problem.num_items(); ++item) {
      if (problem.is_alone(item)) same.set_alone(item, problem.sizes().back());
    }
    DraftSlots slots = best_slots(unlimited, same, effort, bound);
    unlimited.options = plan.options;
    set_slots(problem, slots, unlimited);
    set_prediction(unlimited);
    if (memory_excess(unlimited) == 0) return slots;
  }
  return best_slots(plan, problem, effort, bound);
}

// Adds a unit that was left out to the first micro-batch that has room for it.
bool has_joined(std::size_t unit, StepPlan& plan) {
  std::vector<SequenceId> ids;
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    if (unit_of(plan, i) == unit) ids.emplace_back(static_cast<std::int32_t>(i));
  }
  const std::vector<Tokens> lengths = all_lengths(plan);
  const auto limit = static_cast<std::size_t>(plan.options.max_sequences);
  for (Slot& slot : plan.microbatches) {
    for (ContextGroup& group : slot) {
      Tokens tokens = 0;
      for (const auto* list : {&group.sequences, &ids}) {
        for (const SequenceId id : *list) {
          tokens +=
              padded_length(lengths[id.index()], group.ranks.size, plan.options.tensor_parallel);
        }
      }
      const bool is_oversized =
          std::any_of(group.sequences.begin(), group.sequences.end(), [&](SequenceId id) {
            return std::binary_search(plan.oversized.begin(), plan.oversized.end(), id);
          });
      if (is_oversized || tokens > within_memory(plan).capacity * group.ranks.size ||
          (limit > 0 && group.sequences.size() + ids.size() > limit)) {
        continue;
      }
      group.sequences.insert(group.sequences.end(), ids.begin(), ids.end());
      std::sort(group.sequences.begin(), group.sequences.end());
      group.exchange = cheapest_exchange(plan, group);
      set_prediction(plan);
      plan.lower_bound_ns = 0;  // that of fewer sequences says nothing
      return true;
    }
  }
  return false;
}

// Why the plan that was found is none, if it holds more activations than it may.
std::optional<std::string> find_memory_excess(const StepPlan& plan) {
  const std::int64_t limit = plan.options.max_activation_bytes;
  const auto& peaks = plan.peak_activation_bytes;
  const auto fullest = std::max_element(peaks.begin(), peaks.end());
  if (limit == 0 || *fullest <= limit) return std::nullopt;
  return fmt::format(
      "rank {} holds {} activation bytes in the best plan found, more than "
      "max_activation_bytes {}",
      fullest - peaks.begin(), *fullest, limit);
}

}  // namespace

StepPlan plan_step(const Batch& batch, const Topology& topology, const CostModel& cost,
                   const PlanOptions& options) {
  StepPlan plan;
  plan.options = resolved(options, topology);
  plan.topology = topology;
  plan.cost = cost;
  plan.batch = batch;
  const std::size_t num_rows = batch.lengths.size();
  require(num_rows >= 1, where, "there are no sequences, must be at least 1");
  check_lengths(where, batch.lengths, num_rows);
  require(batch.extra_cost_ns.empty() || batch.extra_cost_ns.size() == num_rows, where,
          "extra_cost_ns has {} values, must have {} as there are lengths",
          batch.extra_cost_ns.size(), num_rows);
  if (plan.options.keep_groups != KeepGroups::none) {
    require(!batch.groups.empty(), where, "keep_groups is {}, but the batch has no groups",
            name_of(plan.options.keep_groups));
    check_groups(where, batch.groups, num_rows);
  }

  const PaddedRows rows =
      pad_rows(static_cast<std::int32_t>(num_rows),
               {.pad = *plan.options.pad, .multiple = plan.options.pad_multiple});
  if (rows.status == Status::infeasible) {
    return without_answer(std::move(plan), Status::infeasible, rows.reason);
  }
  plan.padding_rows = rows.num_padding;

  std::string reason;
  bool is_short = false;  // the last answer lacks sequences
  const auto is_answered = [&](std::size_t num_kept) {
    Problem problem(work_of(plan, num_kept), within_memory(plan), cost, plan.options);
    is_short = false;
    if (auto obstacle = find_memory_obstacle(plan, problem)) {
      reason = std::move(*obstacle);
      return false;
    }
    if (auto excluded = apply_oversize(plan, problem)) {
      reason = std::move(*excluded);
      return false;
    }
    const std::int64_t effort = plan.options.effort.value_or(default_effort(problem));
    Nanoseconds bound = 0;
    DraftSlots slots;
    if (plan.options.balance) {
      slots = best_slots_within_memory(plan, problem, effort, bound);
    } else {
      slots = deal_in_order(problem);
    }
    if (plan.options.counts == Counts::equal && plan.options.short_ != Short::empty &&
        has_placeholder(slots)) {
      is_short = true;
      const bool is_fixed = context_mode(plan.options.context).kind == ContextMode::Kind::fixed;
      const PipelineShape& shape = topology.pipeline;
      const std::int32_t multiple = shape.virtual_ > 1 ? shape.group : 1;
      const bool is_filled =
          (!is_fixed && widen(problem, multiple, slots)) ||
          fill_groups(problem, is_fixed ? problem.sizes().front() : problem.sizes().back(),
                      multiple, slots);
      if (!is_filled) {
        reason = fmt::format(
            "{} {} cannot fill equally many slots on {} ranks without placeholders",
            num_units(plan), plan.options.keep_groups == KeepGroups::none ? "sequences" : "groups",
            topology.ranks);
        return false;
      }
    }
    set_slots(problem, slots, plan);
    set_prediction(plan);
    plan.lower_bound_ns = std::min(plan.predicted_step_ns, bound_of_pass(plan, problem, bound));
    set_oversized(problem, plan);
    return true;
  };
  std::size_t kept = num_units(plan);
  bool has_answer = is_answered(kept);
  while (!has_answer && is_short && plan.options.short_ == Short::drop && kept > 1) {
    has_answer = is_answered(--kept);
  }
  if (has_answer) {
    while (kept < num_units(plan) && has_joined(kept, plan)) ++kept;
  }
  if (!has_answer) return without_answer(std::move(plan), Status::infeasible, std::move(reason));
  if (auto excess = find_memory_excess(plan)) {
    return without_answer(std::move(plan), Status::unknown, std::move(*excess));
  }
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (unit_of(plan, i) >= kept) plan.dropped.emplace_back(static_cast<std::int32_t>(i));
  }
  plan.status = plan.predicted_step_ns == plan.lower_bound_ns ? Status::optimal : Status::feasible;
  return plan;
}

}  // namespace isochron
