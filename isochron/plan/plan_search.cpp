// A search for every mode; what few items are worth on top; the bound beside it.

#include "isochron/plan/plan_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bundles/bundle_bound.h"
#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/bundle_search.h"
#include "isochron/plan/bundles/group_choice_bound.h"
#include "isochron/plan/bundles/kept_slots.h"
#include "isochron/plan/bundles/side_by_side.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/equal_search.h"
#include "isochron/plan/exact.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/lone_item.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/pipelines/pipeline_search.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/polish.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/second_look.h"
#include "isochron/plan/slots/equal_counts.h"
#include "isochron/plan/slots/paced_slots.h"
#include "isochron/plan/slots/slot_search.h"
#include "isochron/plan/steps/nested_anneal.h"
#include "isochron/plan/steps/nested_step.h"
#include "isochron/plan/steps/step_search.h"

namespace isochron {

namespace {

constexpr std::int32_t very_few = 12;  // items, for which nothing is spared

// The first, unless the second is predicted to end earlier.
DraftSlots earlier_of(const Problem& problem, DraftSlots first, DraftSlots second) {
  if (predicted_time(problem, second) < predicted_time(problem, first)) return second;
  return first;
}

Draft search_nested_step(const Problem& problem, Nanoseconds bound, std::int64_t effort) {
  if (!has_nested_bundles(problem)) {
    Draft found = search_step(problem, bound, effort);
    const bool is_near = found.time - bound <= bound / 100;
    if (is_near || !has_few_nested_items(problem)) return found;
    auto nested =
        anneal_nested(problem, bound, found.time, nested_changes_worth(problem, bound, effort));
    return nested ? *std::move(nested) : found;
  }
  auto dealt = search_partition(problem, bound, effort / 4);
  // Few bundles that are so near are hardly dealt out better one by one.
  const bool are_few = problem.num_bundles() < 3 * problem.num_ranks();
  const Nanoseconds near = bound / (is_short_step(problem, bound) ? 8 : 50);
  if (dealt && are_few && dealt->time - bound <= near) return *std::move(dealt);
  Draft start = search_step(problem, bound, effort / 16);
  if (!dealt) return search_bundles(problem, start, bound, effort / 6);
  return dealt->time < start.time ? *std::move(dealt) : start;
}

Nanoseconds free_step_bound(const Problem& problem) {
  return block_bound(problem, step_bound(problem));
}

// The effort that a step of slots is worth: about a hundredth of its time, or the search takes
// longer than the step gets shorter. Few items are annealed, which takes longer for its effort.
std::int64_t effort_of_step(const Problem& problem, Nanoseconds bound) {
  if (problem.options().keep_groups == KeepGroups::rank) {
    return std::numeric_limits<std::int64_t>::max();
  }
  // Aligned slots are soon as good as they get.
  const bool are_aligned = problem.options().sync == Sync::microbatch && problem.is_aligned();
  const Nanoseconds part = !has_few_items(problem) ? 12'000 : are_aligned ? 40'000 : 20'000;
  // With equal counts a search that is left out is missed, in whichever pass.
  const bool has_slots = problem.options().sync == Sync::microbatch;
  return time_to_plan(has_slots ? pass_bound(problem, bound) : bound) / part;
}

// What the search for the mode of the plan finds, polished.
DraftSlots search_polished(const StepPlan& plan, const Problem& problem, Answer answer,
                           std::int64_t effort, Nanoseconds& bound);

// What narrower questions find where that is faster than these slots, with a bound that may rise.
DraftSlots looked_at_again(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                           std::int64_t effort, Nanoseconds& bound);

// All that aligned groups alone would get: any size, which begins with that, is never slower. Their
// bound is known, or 0, and may rise.
DraftSlots aligned_answer(const StepPlan& plan, const Problem& aligned, std::int64_t effort,
                          Nanoseconds& bound) {
  StepPlan same = plan;
  same.options = aligned.options();
  DraftSlots slots = search_polished(same, aligned, Answer::whole, effort, bound);
  return looked_at_again(same, aligned, std::move(slots), effort, bound);
}

Draft draft_of(const Problem& problem, const DraftSlots& slots) {
  Draft draft{.groups = {}, .time = step_time(problem, slots)};
  for (const auto& slot : slots) {
    draft.groups.insert(draft.groups.end(), slot.begin(), slot.end());
  }
  return draft;
}

Draft search_free_step(const StepPlan& plan, const Problem& problem, Answer answer,
                       Nanoseconds bound, std::int64_t whole_effort) {
  const bool is_limited = !plan.options.effort && is_time(bound);
  const std::int64_t effort =
      is_limited ? std::min(whole_effort, effort_of_step(problem, bound)) : whole_effort;
  if (has_nested_step(problem)) {  // aligned groups nest as well
    Draft known = search_step(problem, bound, effort / 4);
    auto nested = find_nested_step(problem, known.time);
    return nested ? std::move(*nested) : known;
  }
  const auto aligned = find_aligned(problem);
  if (!aligned) return search_nested_step(problem, bound, effort);
  if (const auto exact = find_exact_step(*aligned)) {
    return improve_step(problem, bound, effort, exact->draft);
  }
  Nanoseconds aligned_bound = free_step_bound(*aligned);
  Draft crossing{.groups = {}, .time = std::numeric_limits<Nanoseconds>::max()};
  const bool is_promising = aligned_bound > bound + (bound >> 9);
  if (is_promising) crossing = search_step(problem, bound, effort);
  if (crossing.time <= aligned_bound) return crossing;
  Draft nested =
      answer == Answer::whole
          ? draft_of(problem, aligned_answer(plan, *aligned, whole_effort, aligned_bound))
          : search_nested_step(*aligned, aligned_bound, effort);
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
  const auto num_bundles = static_cast<std::size_t>(problem.num_bundles());
  const std::size_t num_choices = num_bundles * problem.sizes().size();
  if (problem.num_bundles() > problem.num_ranks() || num_choices > few) return low;
  // More sequences that share what they like leave holes of which one rank knows too little.
  constexpr std::size_t few_sequences = 32;
  if (problem.num_bundles() == problem.num_items() && num_bundles > few_sequences) return low;
  // About a microsecond for each choice and bundle, where that is a twohundredth of the step.
  const std::size_t takes = num_choices * num_bundles * 1000;
  if (problem.num_bundles() > very_few && takes > static_cast<std::size_t>(time) / 200) return low;
  return problem.has_speeds() ? low : group_choice_bound(problem, low, time);
}

// A bound on steps with equal counts, before a search.
Nanoseconds least_equal_step(const Problem& problem) {
  const Nanoseconds low = std::max(equal_step_bound(problem), equal_count_bound(problem));
  return kept_bound(problem, block_bound(problem, low));
}

// Whether slots of any size may save more than it takes to search for them, beside aligned ones
// that are known and have a bound of their own: what that is above the bound of all, and a part of
// what they miss it by, which other sizes of few items miss as well.
bool are_slots_worth(const Problem& problem, Nanoseconds bound, Nanoseconds aligned_bound,
                     Nanoseconds known) {
  if (problem.options().effort || (has_few_items(problem) && !is_time(bound))) return true;
  if (problem.num_items() <= very_few) return true;
  const double part = has_few_items(problem) ? 20 : 4;
  const double saved = static_cast<double>(aligned_bound - bound) +
                       static_cast<double>(known - aligned_bound) / part;
  const double in_haste = 4e5 + 3e3 * problem.num_items();
  return saved > std::min(in_haste, time_of_equal_counts(problem));
}

// The slots, or others that are full already if those are not and take longer once they are.
DraftSlots or_full(const Problem& problem, DraftSlots slots, const DraftSlots& others) {
  if (others.empty() || has_placeholder(others) || !has_placeholder(slots)) return slots;
  const auto full = FullSlots(problem).find(slots);
  if (!full) return others;
  return predicted_time(problem, *full) < predicted_time(problem, others) ? *full : others;
}

// The slots, unless the best for ranks that all wait for each other end earlier, of few items.
DraftSlots or_exact_slots(const Problem& problem, DraftSlots slots) {
  constexpr std::int32_t few = 10;
  if (problem.num_items() > few || problem.options().max_activation_bytes > 0) return slots;
  const double for_all_sets = 1.5e3 * (1 << problem.num_items());
  if (!problem.purse()->pays(for_all_sets)) return slots;
  PlanOptions options = problem.options();
  options.sync = Sync::microbatch;
  const SlotRanks used = must_be_full(options) ? SlotRanks::all : SlotRanks::some;
  auto exact = find_exact_slots(*with_options(problem, options), used);
  if (!exact) return slots;
  if (used == SlotRanks::all) return or_full(problem, std::move(slots), exact->slots);
  equalize(problem, 1, exact->slots);
  return earlier_of(problem, std::move(slots), std::move(exact->slots));
}

// A step in which all ranks wait for each other after every slot.
DraftSlots search_synced(const StepPlan& plan, const Problem& problem, Answer answer,
                         Nanoseconds bound, std::int64_t effort) {
  const bool is_kept = problem.options().keep_groups == KeepGroups::rank;
  const std::int64_t whole_effort = effort;
  if (!plan.options.effort) effort = std::min(effort, effort_of_step(problem, bound));
  DraftSlots best;
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();  // of training
  Nanoseconds least_predicted = std::numeric_limits<Nanoseconds>::max();
  bool is_short = true;  // has placeholders where they are an error
  EqualCounts equal_counts(problem, bound, effort);
  FullSlots full_slots(problem);
  const auto consider = [&](DraftSlots slots) {
    if (slots.empty()) return;
    slots = equal_counts.answer(std::move(slots));
    bool is_short_here = false;
    if (problem.options().short_ != Short::empty) {
      // What idles is hardly faster once it is filled.
      if (!is_short && predicted_time(problem, slots) >= least_predicted) return;
      auto full = full_slots.find(slots);
      is_short_here = !full;
      if (full) slots = *std::move(full);
    }
    const Nanoseconds time = predicted_time(problem, slots);
    if (std::pair(is_short_here, time) >= std::pair(is_short, least_predicted)) return;
    is_short = is_short_here;
    least = slots_time(problem, slots);
    least_predicted = time;
    best = std::move(slots);
  };
  const auto aligned = answer == Answer::whole ? find_aligned(problem) : nullptr;
  Nanoseconds aligned_bound = 0;
  if (aligned) consider(aligned_answer(plan, *aligned, whole_effort, aligned_bound));
  const auto is_near = [&] { return !is_short && least <= bound + (bound >> 13); };
  if (is_kept || problem.has_speeds()) {
    // Every rank has its own pace, or its own bundles. Of many items paces alone are soon found.
    const std::int64_t part = is_kept || has_few_items(problem) ? effort : effort / 4;
    consider(search_kept_slots(problem, bound, part));
  }
  if (!is_kept && !(problem.has_speeds() && is_near())) {
    // Beside aligned groups a part of the effort, more of it for few items.
    const std::int64_t rest =
        std::max(effort / 3, effort / 3 * 2 - std::int64_t{60} * problem.num_items());
    if (!aligned || are_slots_worth(problem, bound, aligned_bound, least)) {
      consider(search_slots(problem, bound, aligned ? rest : effort, least).slots);
    }
    if (problem.has_speeds()) consider(search_paced_slots(problem, effort).slots);
    const auto coarser = find_coarser(problem);
    const Nanoseconds least_coarse = coarser ? equal_count_bound(*coarser) : least;
    if (least_coarse < least &&
        problem.purse()->pays(time_of_equal_counts(*coarser),
                              static_cast<double>(least - std::max(bound, least_coarse)))) {
      StepPlan same = plan;
      same.options = coarser->options();
      DraftSlots slots = search_synced(same, *coarser, answer, bound, whole_effort);
      // What idles there may have work for smaller groups.
      for (auto& slot : slots) {
        std::erase_if(slot, [](const DraftGroup& group) { return group.items.empty(); });
      }
      consider(std::move(slots));
    }
  }
  return best;
}

DraftSlots search_stages(const StepPlan& plan, const Problem& problem, Answer answer,
                         std::int64_t effort, Nanoseconds& bound) {
  DraftSlots start;
  const auto aligned = answer == Answer::whole ? find_aligned(problem) : nullptr;
  Nanoseconds aligned_bound = 0;
  if (aligned) start = aligned_answer(plan, *aligned, effort, aligned_bound);
  const RankRoom room = rank_room_of(problem);
  const auto found = [&] {
    DraftSlots slots = search_pipeline(problem, plan, room, bound, effort, start);
    return must_be_full(plan.options) ? or_full(problem, std::move(slots), start) : slots;
  };
  if (bound > 0) return found();
  bound = std::max(pipeline_bound(problem, room), side_by_side_bound(problem));
  limit_purse(problem, bound);
  DraftSlots slots = found();
  // Where a rank has two bundles or more, they leave less than stages wait in any case.
  const bool are_few = problem.num_bundles() < 2 * problem.num_ranks();
  if (!are_few || !has_nested_bundles(problem)) return slots;
  // Which of many share a block takes longer to see than a short step is worth.
  const std::int64_t num_pairs = std::int64_t{problem.num_bundles()} * problem.num_bundles();
  constexpr Nanoseconds for_a_pair = 3'000;
  const Nanoseconds worth = time_to_plan(pass_bound(problem, bound)) / 200;
  if (is_time(bound) && for_a_pair * num_pairs > worth) return slots;
  // What leaves holes in aligned blocks is about the work of a rank, whatever it waits for. The
  // slots are counted by the pipeline.
  CostModel without_slots = plan.cost;
  without_slots.microbatch_ns = 0;
  const auto same = with_same_work(problem, problem.topology(), without_slots, plan.options);
  const Nanoseconds most_work = step_time(*same, slots);
  const Nanoseconds high = pipeline_bound_of(problem, room, most_work);
  if (high <= bound) return slots;
  const Nanoseconds work = block_bound(*same, step_bound(*same));
  const Nanoseconds low = pipeline_bound_of(problem, room, work);
  bound = std::max(bound, low);
  if (high <= bound) return slots;
  // The bound rises with the work, about evenly: less than this much more does not raise it.
  const double part = static_cast<double>(bound - low) / static_cast<double>(high - low);
  const auto useful =
      work + static_cast<Nanoseconds>(0.9 * part * static_cast<double>(most_work - work));
  const Nanoseconds least_work = bundle_bound(*same, work, most_work, useful);
  bound = std::max(bound, pipeline_bound_of(problem, room, least_work));
  return slots;
}

DraftSlots search(const StepPlan& plan, const Problem& problem, Answer answer, std::int64_t effort,
                  Nanoseconds& bound) {
  const PlanOptions& options = plan.options;
  const bool is_given = bound > 0;
  if (plan.topology.pipeline.stages > 1) return search_stages(plan, problem, answer, effort, bound);
  if (options.sync == Sync::microbatch) {
    if (must_be_full(options)) {
      if (auto exact = find_exact_slots(problem, SlotRanks::all)) {
        bound = exact->time;
        return std::move(exact->slots);
      }
    }
    if (auto exact = find_exact_slots(problem)) {
      bound = exact->time;
      equalize(problem, 1, exact->slots);
      // What idles there got something to run, which may take longer than slots that need no more.
      if (slots_time(problem, exact->slots) > bound) {
        auto full = find_exact_slots(problem, SlotRanks::all);
        if (full) {
          exact->slots = earlier_of(problem, std::move(exact->slots), std::move(full->slots));
        }
      }
      // The best of training may be a nanosecond behind in a forward pass, which rounds.
      const auto aligned = options.pass == Pass::forward ? find_aligned(problem) : nullptr;
      if (!aligned) return exact->slots;
      Nanoseconds aligned_bound = 0;
      DraftSlots slots = aligned_answer(plan, *aligned, effort, aligned_bound);
      equalize(problem, 1, slots);
      return earlier_of(problem, std::move(exact->slots), std::move(slots));
    }
    if (!is_given) bound = kept_bound(problem, slot_bound(problem));
    limit_purse(problem, bound);
    return search_synced(plan, problem, answer, bound, effort);
  }
  if (options.counts == Counts::free) {
    const auto exact = find_exact_step(problem);
    if (exact && exact->draft.time == exact->bound) {
      bound = exact->bound;
      return slots_of(problem, exact->draft);
    }
    // Prices, where they are found, see the holes of blocks and more.
    const bool is_priced = !exact && has_priced_bundles(problem);
    if (!is_given) bound = exact || is_priced ? step_bound(problem) : free_step_bound(problem);
    if (exact) bound = std::max(bound, exact->bound);
    limit_purse(problem, bound);
    Draft found = search_free_step(plan, problem, answer, bound, effort);
    bound = std::max(bound, found.bound);
    if (is_priced && found.time - bound > bound >> 8) bound = block_bound(problem, bound);
    if (exact && exact->draft.time < found.time) found = exact->draft;
    return slots_of(problem, found);
  }
  if (!is_given) bound = least_equal_step(problem);
  limit_purse(problem, bound);
  const std::int64_t part =
      options.effort || !is_time(bound) ? effort : std::min(effort, effort_of_step(problem, bound));
  const auto aligned = answer == Answer::whole ? find_aligned(problem) : nullptr;
  if (!aligned) return or_exact_slots(problem, search_equal_step(problem, bound, part));
  Nanoseconds aligned_bound = 0;
  DraftSlots slots = aligned_answer(plan, *aligned, effort, aligned_bound);
  if (!are_slots_worth(problem, bound, aligned_bound, step_time(problem, slots))) return slots;
  return earlier_of(problem, search_equal_step(problem, bound, part), std::move(slots));
}

// What the search finds, without placeholders where they are not wanted and can be avoided.
DraftSlots search_full(const StepPlan& plan, const Problem& problem, Answer answer,
                       std::int64_t effort, Nanoseconds& bound) {
  DraftSlots slots = search(plan, problem, answer, effort, bound);
  if (plan.topology.pipeline.stages == 1) bound = std::max(bound, left_over_bound(problem));
  if (!must_be_full(plan.options)) return slots;
  auto full = FullSlots(problem).find(slots);
  return full ? *std::move(full) : slots;
}

// Whether full slots are worth their search, beside slots that take a time.
bool are_full_slots_worth(const Problem& problem, Nanoseconds time, Nanoseconds bound) {
  const double for_an_item = 8e3 + 200 * static_cast<double>(problem.sizes().size());
  const auto lost = static_cast<double>(time - pass_bound(problem, bound));
  return problem.purse()->pays(for_an_item * problem.num_items(), lost);
}

// The slots, unless groups that widen over ranks which idle end earlier.
DraftSlots or_full_slots(const Problem& problem, DraftSlots slots, Nanoseconds bound) {
  const PlanOptions& options = problem.options();
  const bool is_fixed = context_mode(options.context).kind == ContextMode::Kind::fixed;
  if (is_fixed || must_be_full(options) || options.max_activation_bytes > 0) return slots;
  if (options.counts == Counts::free || !has_placeholder(slots)) return slots;
  // Many leave little room beside them, whatever they lose.
  constexpr std::int32_t few = 64;
  const Nanoseconds time =
      problem.num_items() <= few ? predicted_time(problem, slots) : pass_bound(problem, bound);
  if (!are_full_slots_worth(problem, time, bound)) return slots;
  auto full = FullSlots(problem).find(slots);
  return full ? earlier_of(problem, std::move(slots), *std::move(full)) : slots;
}

DraftSlots search_polished(const StepPlan& plan, const Problem& problem, Answer answer,
                           std::int64_t effort, Nanoseconds& bound) {
  DraftSlots slots = search_full(plan, problem, answer, effort, bound);
  slots = polished(plan, problem, std::move(slots), answer, effort, pass_bound(problem, bound));
  return or_full_slots(problem, std::move(slots), bound);
}

// The slots, unless bundles on ranks of their own end earlier: few of them, on groups of any size.
DraftSlots or_side_by_side(const Problem& problem, DraftSlots slots) {
  const PlanOptions& options = problem.options();
  const std::int32_t few = options.keep_groups == KeepGroups::rank ? 32 : 16;
  const bool is_kept_whole = options.keep_groups == KeepGroups::microbatch;
  if (is_kept_whole || options.short_ != Short::empty) return slots;
  if (problem.is_aligned() || problem.has_speeds()) return slots;
  if (problem.num_bundles() > std::min(few, problem.num_ranks())) return slots;
  const auto found = find_side_by_side(problem, step_time(problem, slots));
  if (!found) return slots;
  DraftSlots apart = slots_of(problem, *found);
  if (options.counts != Counts::free) equalize(problem, 1, apart);
  return earlier_of(problem, std::move(slots), std::move(apart));
}

DraftSlots looked_at_again(const StepPlan& plan, const Problem& problem, DraftSlots slots,
                           std::int64_t effort, Nanoseconds& bound) {
  const bool has_stages = plan.topology.pipeline.stages > 1;
  const bool has_slots = plan.options.sync == Sync::microbatch && !has_stages;
  if (!has_stages) {
    bound = shared_bound(problem, bound,
                         has_slots ? slots_time(problem, slots) : step_time(problem, slots));
  }
  if (has_slots && !plan.options.effort) effort = std::min(effort, effort_of_step(problem, bound));
  return second_look(plan, problem, std::move(slots), bound, effort, search_polished);
}

// The slots without placeholders, if there is a way; all items dealt anew where that ends earlier
// and is worth a look.
DraftSlots full_or_dealt(const Problem& problem, DraftSlots slots, Nanoseconds bound) {
  FullSlots full_slots(problem);
  auto full = full_slots.find(slots);
  if (!full) return slots;
  const Nanoseconds least = pass_bound(problem, bound);
  const Nanoseconds time = predicted_time(problem, *full);
  const bool is_dealt = time > least + least / 64 && are_full_slots_worth(problem, time, bound);
  if (is_dealt && full_slots.dealt().time < time) return *full_slots.dealt().slots;
  return *std::move(full);
}

// What the search finds, polished, and what narrower questions find where that is faster.
DraftSlots best_slots(const StepPlan& plan, const Problem& problem, std::int64_t effort,
                      Nanoseconds& bound) {
  DraftSlots slots = search_polished(plan, problem, Answer::whole, effort, bound);
  slots = looked_at_again(plan, problem, std::move(slots), effort, bound);
  // Not before: a second look is taken at what is far from its bound.
  if (must_be_full(plan.options)) slots = full_or_dealt(problem, std::move(slots), bound);
  if (plan.topology.pipeline.stages > 1) return slots;
  return or_side_by_side(problem, std::move(slots));
}

// Whether no prompt has two sequences.
bool has_single_prompts(const Problem& problem) {
  if (problem.num_bundles() != problem.num_items()) return false;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (problem.num_sequences(item) > 1) return false;
  }
  return true;
}

// Whether some item takes no time at all: such costs tell nothing apart, and nothing is a part of
// them.
bool has_free_items(const Problem& problem) {
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(bundle)];
    for (const ItemId item : problem.items_of(bundle)) {
      if (problem.least_item_cost(size, item) + problem.least_fixed(size) == 0) return true;
    }
  }
  return false;
}

}  // namespace

FoundSlots search_plan(const StepPlan& plan, const Problem& problem, std::int64_t effort) {
  if (has_free_items(problem)) {
    // Every token takes a nanosecond more, on whichever ranks; the best is near the best, if not
    // it.
    StepPlan same = plan;
    same.cost.linear_ns += problem.num_ranks();
    const auto priced = with_same_work(problem, problem.topology(), same.cost, plan.options);
    return {.slots = search_plan(same, *priced, effort).slots, .bound = 0};
  }
  if (auto alone = find_lone_item(plan, problem)) return *std::move(alone);
  if (plan.options.keep_groups != KeepGroups::none && has_single_prompts(problem)) {
    // Nothing to keep together: searches without that rule look at more.
    StepPlan same = plan;
    same.options.keep_groups = KeepGroups::none;
    return search_plan(same, *with_options(problem, same.options), effort);
  }
  if (const auto whole = find_whole_groups(problem)) {
    StepPlan same = plan;
    same.options = whole->options();
    return search_plan(same, *whole, effort);
  }
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
