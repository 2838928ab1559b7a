// A search for every mode; what few items are worth on top; the bound beside it.

#include "isochron/plan/plan_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "isochron/plan/anneal.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_bound.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/bundle_search.h"
#include "isochron/plan/bundles/group_choice_bound.h"
#include "isochron/plan/bundles/kept_slots.h"
#include "isochron/plan/bundles/side_by_side.h"
#include "isochron/plan/equal_search.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/pipeline_search.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/second_look.h"
#include "isochron/plan/slots/paced_slots.h"
#include "isochron/plan/slots/slot_search.h"
#include "isochron/plan/steps/nested_step.h"
#include "isochron/plan/steps/step_search.h"

namespace isochron {

namespace {

// The first, unless the second is predicted to end earlier.
DraftSlots earlier_of(const Problem& problem, DraftSlots first, DraftSlots second) {
  if (predicted_time(problem, second) < predicted_time(problem, first)) return second;
  return first;
}

Draft search_nested_step(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  if (!has_nested_bundles(problem)) return search_step(problem, bound, effort);
  auto dealt = search_partition(problem, bound, effort / 4);
  // Few bundles that are so near are hardly dealt out better one by one.
  const bool are_few = problem.num_bundles() < 3 * problem.num_ranks();
  if (dealt && are_few && dealt->time - bound <= bound / 50) return *std::move(dealt);
  Draft start = search_step(problem, bound, effort / 16);
  if (!dealt) return search_bundles(problem, start, bound, effort / 6);
  return dealt->time < start.time ? *std::move(dealt) : start;
}

Nanoseconds free_step_bound(const Problem& problem) {
  return block_bound(problem, step_bound(problem));
}

Draft search_free_step(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  if (has_nested_step(problem)) {  // aligned groups nest as well
    Draft known = search_step(problem, bound, effort / 4);
    auto nested = find_nested_step(problem, known.time);
    return nested ? std::move(*nested) : known;
  }
  const auto aligned = find_aligned(problem);
  if (!aligned) return search_nested_step(problem, bound, effort);
  // All that aligned groups get when they are asked for: a wider choice is never slower.
  if (const auto exact = find_exact_step(*aligned)) {
    return improve_step(problem, bound, effort, exact->draft);
  }
  const Nanoseconds aligned_bound = free_step_bound(*aligned);
  Draft crossing{.groups = {}, .time = std::numeric_limits<Nanoseconds>::max()};
  const bool is_promising = aligned_bound > bound + (bound >> 9);
  if (is_promising) crossing = search_step(problem, bound, effort);
  if (crossing.time <= aligned_bound) return crossing;
  Draft nested = search_nested_step(*aligned, aligned_bound, effort);
  nested.bound = 0;  // that of aligned groups
  if (is_promising) return crossing.time < nested.time ? crossing : nested;
  const std::int32_t size = problem.sizes().front();
  const bool is_narrow =
      std::all_of(nested.groups.begin(), nested.groups.end(),
                  [&](const DraftGroup& group) { return group.ranks.size == size; });
  // Without wide groups there is nothing to choose.
  if (is_narrow) return nested;
  return improve_step(problem, bound, effort, std::move(nested));
}

// Whoever else ranks wait for, bundles that keep their ranks take at least as long as if they
// waited for the members of their groups only. Before a search.
Nanoseconds kept_bound(const Problem& problem, Nanoseconds low) {
  if (problem.options().keep_groups != KeepGroups::rank) return low;
  low = std::max(low, step_bound(problem));
  const auto exact = find_exact_step(problem);
  return exact ? std::max(low, exact->bound) : block_bound(problem, low);
}

// By which bundles can share ranks, after a search, when a time is known.
Nanoseconds shared_bound(const Problem& problem, Nanoseconds low, Nanoseconds time) {
  if (has_nested_bundles(problem)) return bundle_bound(problem, low, time);
  // Ranks that have more than a bundle each leave small holes, which take long to see.
  constexpr std::size_t few = 2048;
  const std::size_t num_choices =
      static_cast<std::size_t>(problem.num_bundles()) * problem.sizes().size();
  if (problem.num_bundles() > problem.num_ranks() || num_choices > few) return low;
  return problem.has_speeds() ? low : group_choice_bound(problem, low, time);
}

// A bound on steps with equal counts, before a search.
Nanoseconds least_equal_step(const Problem& problem) {
  const Nanoseconds low = std::max(equal_step_bound(problem), equal_count_bound(problem));
  return kept_bound(problem, block_bound(problem, low));
}

// Few items are worth a second look: annealing finds what the searches, made for many, miss.
DraftSlots polished(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                    std::int64_t effort, Nanoseconds bound) {
  if (!is_annealed(problem)) return slots;
  const PlanOptions& options = plan.options;
  const PipelineShape& shape = plan.topology.pipeline;
  const std::int32_t multiple = shape.virtual_ > 1 ? shape.group : 1;
  StepPlan trial = plan;
  // Slower than all that keeps the rules, the less it breaks them the better.
  const auto penalized = [](std::int64_t excess) {
    return max_total_cost / 2 + std::min(excess, max_total_cost / 4);
  };
  const auto time_of_equal = [&](const DraftSlots& filled) {
    if (options.short_ != Short::empty && has_placeholder(filled)) {
      return penalized(predicted_time(problem, filled));
    }
    if (shape.stages == 1) return predicted_time(problem, filled);
    set_slots(problem, filled, trial);
    set_prediction(trial);
    const std::int64_t excess = memory_excess(trial);
    return excess == 0 ? trial.predicted_step_ns : penalized(excess);
  };
  const auto time = [&](const Draft& draft) {
    DraftSlots filled = slots_of(problem, draft);
    if (options.counts == Counts::free) return predicted_time(problem, filled);
    equalize(problem, multiple, filled);
    return time_of_equal(filled);
  };
  // A trial plays the step once. What nests as well as can be is near the best.
  const bool is_near = options.counts == Counts::free && has_nested_step(problem);
  const std::int64_t cost = 1 + problem.num_items() * shape.num_chunks() / (is_near ? 1 : 4);
  // The fewer items there are, the more a change costs on the way to a better step.
  const double heat = is_near || problem.num_items() > 8 ? 0.02 : 0.1;
  DraftSlots annealed = anneal(problem, slots, bound, heat, effort / cost, time);
  if (options.counts == Counts::free) return annealed;
  equalize(problem, multiple, annealed);
  // Annealing knows no placeholders: it begins with what is left of the slots without them.
  return time_of_equal(slots) < time_of_equal(annealed) ? slots : annealed;
}

// Slots in which every rank has a micro-batch.
DraftSlots with_equal_counts(const Problem& problem, DraftSlots slots, Nanoseconds bound,
                             std::int64_t effort) {
  const Nanoseconds before = slots_time(problem, slots);
  equalize(problem, 1, slots);
  const Nanoseconds after = slots_time(problem, slots);
  if (after <= before + before / 100 || problem.options().keep_groups != KeepGroups::none) {
    return slots;
  }
  // Ranks that idle got what does not suit them: micro-batches of one sequence leave them alone.
  DraftSlots other = search_slots(*with_single_sequences(problem), bound, effort).slots;
  equalize(problem, 1, other);
  return slots_time(problem, other) < after ? other : slots;
}

DraftSlots search_synced(const StepPlan& plan, const Problem& problem, Nanoseconds bound,
                         std::int64_t effort);

// What the search for the mode of the plan finds, polished.
DraftSlots search_polished(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                           Nanoseconds& bound);

// All that aligned groups alone would get: any size, which begins with that, is never slower.
DraftSlots search_aligned(const StepPlan& plan, const Problem& aligned, Nanoseconds bound,
                          std::int64_t effort) {
  StepPlan same = plan;
  same.options = aligned.options();
  auto exact = find_exact_slots(aligned);
  if (exact) {
    equalize(aligned, 1, exact->slots);
    bound = exact->time;
  }
  DraftSlots slots = polished(
      same, aligned, exact ? std::move(exact->slots) : search_synced(same, aligned, bound, effort),
      effort, pass_bound(aligned, bound));
  return second_look(same, aligned, std::move(slots), bound, effort, search_polished);
}

// A step in which all ranks wait for each other after every slot.
DraftSlots search_synced(const StepPlan& plan, const Problem& problem, Nanoseconds bound,
                         std::int64_t effort) {
  const bool is_kept = problem.options().keep_groups == KeepGroups::rank;
  DraftSlots best;
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();  // of training
  Nanoseconds least_predicted = std::numeric_limits<Nanoseconds>::max();
  bool is_short = true;  // has placeholders where they are an error
  const auto consider = [&](DraftSlots slots) {
    if (slots.empty()) return;
    slots = with_equal_counts(problem, std::move(slots), bound, effort);
    const auto time_of = [&](const DraftSlots& each) { return predicted_time(problem, each); };
    bool is_short_here = false;
    if (problem.options().short_ != Short::empty) {
      auto full = find_full_slots(problem, 1, slots, time_of);
      is_short_here = !full;
      if (full) slots = *std::move(full);
    }
    const Nanoseconds time = time_of(slots);
    if (std::pair(is_short_here, time) >= std::pair(is_short, least_predicted)) return;
    is_short = is_short_here;
    least = slots_time(problem, slots);
    least_predicted = time;
    best = std::move(slots);
  };
  const auto aligned = find_aligned(problem);
  if (aligned) {
    // With slow ranks the search aims at its bound.
    consider(search_aligned(plan, *aligned, problem.has_speeds() ? slot_bound(*aligned) : bound,
                            effort));
  }
  if (is_kept || problem.has_speeds()) {
    consider(search_kept_slots(problem, bound, effort));  // every rank has its own pace, or its own
  }
  if (!is_kept) {
    // Beside aligned groups a part of the effort, more of it for few items.
    const std::int64_t rest =
        std::max(effort / 3, effort / 3 * 2 - std::int64_t{60} * problem.num_items());
    consider(search_slots(problem, bound, aligned ? rest : effort, least).slots);
    if (problem.has_speeds()) consider(search_paced_slots(problem, effort).slots);
    const auto coarser = find_coarser(problem);
    if (coarser && equal_count_bound(*coarser) < least) {
      StepPlan same = plan;
      same.options = coarser->options();
      DraftSlots slots = search_synced(same, *coarser, bound, effort);
      // What idles there may have work for smaller groups.
      for (auto& slot : slots) {
        std::erase_if(slot, [](const DraftGroup& group) { return group.items.empty(); });
      }
      consider(std::move(slots));
    }
  }
  return best;
}

// The effort that a step of slots is worth: about a hundredth of its time, or the search takes
// longer than the step gets shorter. Few items are annealed, which takes longer for its effort.
std::int64_t effort_of_step(const Problem& problem, Nanoseconds bound) {
  const bool has_choice =
      problem.sizes().size() > 1 && problem.options().keep_groups == KeepGroups::none;
  if (!has_choice) return std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = 2000;  // less than what it takes to begin
  return std::max<std::int64_t>(least, bound / (problem.num_items() <= 256 ? 20'000 : 12'000));
}

// All that aligned groups alone would get in a pipeline; none where they are all there is.
DraftSlots search_aligned_stages(const StepPlan& plan, const Problem& problem,
                                 std::int64_t effort) {
  const auto aligned = find_aligned(problem);
  if (!aligned) return {};
  StepPlan same = plan;
  same.options = aligned->options();
  Nanoseconds bound = 0;
  DraftSlots slots = search_polished(same, *aligned, effort, bound);
  return second_look(same, *aligned, std::move(slots), bound, effort, search_polished);
}

DraftSlots search_stages(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                         Nanoseconds& bound) {
  DraftSlots start = search_aligned_stages(plan, problem, effort);
  const RankRoom room = rank_room_of(problem);
  if (bound > 0) return search_pipeline(problem, plan, room, bound, effort, std::move(start));
  bound = pipeline_bound(problem, room);
  DraftSlots slots = search_pipeline(problem, plan, room, bound, effort, std::move(start));
  // Where a rank has two bundles or more, they leave less than stages wait in any case.
  const bool are_few = problem.num_bundles() < 2 * problem.num_ranks();
  if (!are_few || !has_nested_bundles(problem)) return slots;
  // What leaves holes in aligned blocks is about the work of a rank, whatever it waits for. The
  // slots are counted by the pipeline.
  CostModel without_slots = plan.cost;
  without_slots.microbatch_ns = 0;
  Problem same(problem.work(), problem.topology(), without_slots, plan.options);
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (problem.is_alone(item)) same.set_alone(item, problem.alone_size());
  }
  const Nanoseconds most_work = step_time(same, slots);
  const Nanoseconds high = pipeline_bound_of(problem, room, most_work);
  if (high <= bound) return slots;
  const Nanoseconds work = block_bound(same, step_bound(same));
  const Nanoseconds low = pipeline_bound_of(problem, room, work);
  bound = std::max(bound, low);
  if (high <= bound) return slots;
  // The bound rises with the work, about evenly: less than this much more does not raise it.
  const double part = static_cast<double>(bound - low) / static_cast<double>(high - low);
  const auto useful =
      work + static_cast<Nanoseconds>(0.9 * part * static_cast<double>(most_work - work));
  const Nanoseconds least_work = bundle_bound(same, work, most_work, useful);
  bound = std::max(bound, pipeline_bound_of(problem, room, least_work));
  return slots;
}

DraftSlots search(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                  Nanoseconds& bound) {
  const PlanOptions& options = plan.options;
  if (plan.topology.pipeline.stages > 1) return search_stages(plan, problem, effort, bound);
  if (options.sync == Sync::microbatch) {
    if (auto exact = find_exact_slots(problem)) {
      bound = exact->time;
      equalize(problem, 1, exact->slots);
      // The best of training may be a nanosecond behind in a forward pass, which rounds.
      const auto aligned = options.pass == Pass::forward ? find_aligned(problem) : nullptr;
      if (!aligned) return exact->slots;
      const Nanoseconds aim = kept_bound(*aligned, slot_bound(*aligned));
      DraftSlots slots = search_aligned(plan, *aligned, aim, effort);
      equalize(problem, 1, slots);
      return earlier_of(problem, std::move(exact->slots), std::move(slots));
    }
    bound = kept_bound(problem, slot_bound(problem));
    if (!options.effort) effort = std::min(effort, effort_of_step(problem, bound));
    DraftSlots slots = search_synced(plan, problem, bound, effort);
    bound = shared_bound(problem, bound, slots_time(problem, slots));
    return slots;
  }
  if (options.counts == Counts::free) {
    const auto exact = find_exact_step(problem);
    if (exact && exact->draft.time == exact->bound) {
      bound = exact->bound;
      return slots_of(problem, exact->draft);
    }
    bound = exact ? std::max(step_bound(problem), exact->bound) : free_step_bound(problem);
    Draft found = search_free_step(problem, bound, effort);
    bound = std::max(bound, found.bound);
    if (exact && exact->draft.time < found.time) found = exact->draft;
    bound = shared_bound(problem, bound, found.time);
    return slots_of(problem, found);
  }
  bound = least_equal_step(problem);
  DraftSlots slots = search_equal_step(problem, bound, effort);
  if (const auto aligned = find_aligned(problem)) {
    // All that aligned groups alone would get: any size is never slower.
    StepPlan same = plan;
    same.options = aligned->options();
    const Nanoseconds aim = least_equal_step(*aligned);
    DraftSlots nested = polished(same, *aligned, search_equal_step(*aligned, aim, effort), effort,
                                 pass_bound(problem, aim));
    nested = second_look(same, *aligned, std::move(nested), aim, effort, search_polished);
    slots = earlier_of(problem, std::move(slots), std::move(nested));
  }
  bound = shared_bound(problem, bound, step_time(problem, slots));
  return slots;
}

// What the search finds, without placeholders where they are not wanted and can be avoided.
DraftSlots search_full(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                       Nanoseconds& bound) {
  DraftSlots slots = search(plan, problem, effort, bound);
  if (plan.options.counts == Counts::free || plan.options.short_ == Short::empty) return slots;
  auto full = find_full_slots(plan, problem, slots);
  return full ? *std::move(full) : slots;
}

DraftSlots search_polished(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                           Nanoseconds& bound) {
  DraftSlots slots = search_full(plan, problem, effort, bound);
  return polished(plan, problem, std::move(slots), effort, pass_bound(problem, bound));
}

// The slots, unless bundles on ranks of their own end earlier: few that keep their ranks, on groups
// of any size.
DraftSlots or_side_by_side(const Problem& problem, DraftSlots slots) {
  const PlanOptions& options = problem.options();
  constexpr std::int32_t few = 32;
  if (options.keep_groups != KeepGroups::rank || options.short_ != Short::empty) return slots;
  if (problem.is_aligned() || problem.has_speeds()) return slots;
  if (problem.num_bundles() > std::min(few, problem.num_ranks())) return slots;
  const auto found = find_side_by_side(problem, step_time(problem, slots));
  if (!found) return slots;
  DraftSlots apart = slots_of(problem, *found);
  if (options.counts != Counts::free) equalize(problem, 1, apart);
  return earlier_of(problem, std::move(slots), std::move(apart));
}

// What the search finds, polished, and what narrower questions find where that is faster.
DraftSlots best_slots(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                      Nanoseconds& bound) {
  DraftSlots slots = search_polished(plan, problem, effort, bound);
  const bool has_slots =
      plan.options.sync == Sync::microbatch && plan.topology.pipeline.stages == 1;
  if (has_slots && !plan.options.effort) effort = std::min(effort, effort_of_step(problem, bound));
  slots = second_look(plan, problem, std::move(slots), bound, effort, search_polished);
  if (plan.topology.pipeline.stages > 1) return slots;
  return or_side_by_side(problem, std::move(slots));
}

}  // namespace

FoundSlots search_plan(const StepPlan& plan, const Problem& problem, std::int64_t effort) {
  FoundSlots found;
  // Where a limit on activations makes no difference, none is kept in mind on the way.
  if (plan.options.max_activation_bytes > 0 && plan.topology.pipeline.stages > 1) {
    StepPlan unlimited = plan;
    unlimited.options.max_activation_bytes = 0;
    const auto same = with_options(problem, unlimited.options);
    found.slots = best_slots(unlimited, *same, effort, found.bound);
    unlimited.options = plan.options;
    set_slots(problem, found.slots, unlimited);
    set_prediction(unlimited);
    if (memory_excess(unlimited) == 0) return found;
  }
  found.slots = best_slots(plan, problem, effort, found.bound);
  found.bound = pass_bound(problem, found.bound);
  return found;
}

}  // namespace isochron
