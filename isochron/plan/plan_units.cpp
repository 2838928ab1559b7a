// What excludes a plan at sight comes first, then the search for its mode. Where no rank may idle
// and ranks of what was found do, three more ways follow, the quick ones first.

#include "isochron/plan/plan_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "isochron/pad/pad.h"
#include "isochron/plan/deal.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/full_counts.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/full_trial.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_search.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/plan_work.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/related_problems.h"

namespace isochron {

namespace {

Outcome unfilled(const StepPlan& plan, bool is_proved, std::size_t most_units) {
  return {.kind = Outcome::Kind::unfilled,
          .is_proved = is_proved,
          .reason = unfilled_text(plan, is_proved),
          .most_units = most_units};
}

// Fewer leave a group without one, however they are spread.
std::int64_t fewest_items(const StepPlan& plan) {
  const PipelineShape& shape = plan.topology.pipeline;
  const ContextMode mode = context_mode(plan.options.context);
  const bool is_fixed = mode.kind == ContextMode::Kind::fixed;
  const std::int64_t num_groups = is_fixed ? plan.topology.ranks / mode.size : 1;
  return num_groups * shape.group;
}

// Why not all items can be run, whatever stands beside them.
std::optional<std::string> find_obstacle(const StepPlan& plan, Problem& problem) {
  if (auto obstacle = find_memory_obstacle(plan, problem)) return obstacle;
  return apply_oversize(plan, problem);
}

// Whether the first `num_kept` units could be run without the rows that are added to them.
bool are_added_rows_at_fault(const StepPlan& plan, std::size_t num_kept) {
  if (plan.padding_rows == 0) return false;
  StepPlan real = plan;
  real.padding_rows = 0;
  Problem problem(work_of(real, num_kept), within_memory(real), real.cost, real.options);
  return !find_obstacle(real, problem);
}

std::int64_t effort_of(const Problem& problem) {
  const std::optional<std::int64_t>& effort = problem.options().effort;
  return effort ? *effort : default_effort(problem);
}

// What the search finds with the effort that is asked for. More than the default goes other ways
// sooner, which may miss what the default finds: that counts too.
FoundSlots search_with_effort(const StepPlan& plan, const Problem& problem) {
  FoundSlots found = search_plan(plan, problem, effort_of(problem));
  if (effort_of(problem) <= default_effort(problem)) return found;
  StepPlan usual = plan;
  usual.options.effort.reset();
  const auto same = with_options(problem, usual.options);
  FoundSlots others = search_plan(usual, *same, default_effort(*same));
  const auto score = [&](const DraftSlots& slots) {
    return std::tuple(must_be_full(plan.options) && has_placeholder(slots),
                      excess_with(problem, slots, usual), predicted_time(problem, slots));
  };
  found.bound = std::max(found.bound, others.bound);
  if (score(others.slots) < score(found.slots)) found.slots = std::move(others.slots);
  return found;
}

// The same sequences where ranks may idle. A bound of that is one of this too.
FoundSlots search_with_placeholders(const StepPlan& plan, const Problem& problem) {
  StepPlan same = plan;
  same.options.short_ = Short::empty;
  const auto with_placeholders = with_options(problem, same.options);
  return search_plan(same, *with_placeholders, effort_of(*with_placeholders));
}

// Some milliseconds for a plan that is none yet, and nothing for more items than that may place.
std::int64_t work_of_trial(const Problem& problem) {
  constexpr std::int32_t few = 24;
  return problem.num_items() <= few ? 50'000 : 0;
}

// Slots like those that were found, but without placeholders. None if there seem to be none.
std::optional<FoundSlots> find_filled(StepPlan& plan, const Problem& problem, FoundSlots found,
                                      bool is_searched) {
  if (has_placeholder(found.slots)) {
    if (auto full = FullSlots(problem).find(found.slots)) found.slots = *std::move(full);
  }
  const auto keeps_all = [&](const DraftSlots& slots) {
    return !has_placeholder(slots) && excess_with(problem, slots, plan) == 0;
  };
  if (is_searched && !keeps_all(found.slots)) {
    // Where placeholders are allowed, other slots are looked for, which may need none.
    FoundSlots others = search_with_placeholders(plan, problem);
    if (keeps_all(others.slots)) return others;
  }
  if (has_placeholder(found.slots)) {
    auto full = try_full_slots(problem, plan.topology.pipeline.group, work_of_trial(problem));
    if (!full) return std::nullopt;
    found.slots = *std::move(full);
  }
  return found;
}

// A bound that a plan beats by more than roundings, of every item and of very long times, is none:
// better that than a step called optimal which is not.
Nanoseconds believed_bound(Nanoseconds bound, Nanoseconds predicted, std::int64_t num_items) {
  const Nanoseconds rounded = 1 + num_items / 2 + (bound >> 50);
  return bound - rounded > predicted ? 0 : std::min(bound, predicted);
}

}  // namespace

std::string unfilled_text(const StepPlan& plan, bool is_proved) {
  const PlanOptions& options = plan.options;
  const std::string_view units = options.keep_groups == KeepGroups::none ? "sequences" : "groups";
  const std::string divided = must_divide(options)
                                  ? fmt::format(", in multiples of {} rows", options.pad_multiple)
                                  : std::string();
  if (!is_proved) {
    return fmt::format("no way was found to fill equally many slots on {} ranks with {} {}{}",
                       plan.topology.ranks, num_units(plan), units, divided);
  }
  return fmt::format("{} {} cannot fill equally many slots on {} ranks without placeholders{}",
                     num_units(plan), units, plan.topology.ranks, divided);
}

Outcome plan_units(StepPlan& plan, std::size_t num_kept, Look look) {
  const PlanOptions& options = plan.options;
  const std::int64_t num_missing =
      num_padding_rows(num_rows_of(plan, num_kept), options.pad_multiple);
  if (options.pad == Pad::error && num_missing > 0) return unfilled(plan, true, num_kept - 1);
  if (options.pad == Pad::rows) plan.padding_rows = static_cast<std::int32_t>(num_missing);

  Problem problem(work_of(plan, num_kept), within_memory(plan), plan.cost, options);
  if (auto obstacle = find_obstacle(plan, problem)) {
    const bool may_fewer = are_added_rows_at_fault(plan, num_kept);  // which may need no such rows
    return {.kind = may_fewer ? Outcome::Kind::unfilled : Outcome::Kind::impossible,
            .reason = *std::move(obstacle),
            .most_units = num_kept - 1};
  }
  const bool is_full = must_be_full(options);
  if (is_full && problem.num_items() < fewest_items(plan)) {
    return {.kind = Outcome::Kind::too_few,
            .reason = unfilled_text(plan, true),
            .most_units = num_kept - 1};
  }
  if (is_full && are_full_slots_excluded(problem)) {
    // Rows that are added are bundles too, and change with the number of units.
    const bool are_units = !must_divide(options);
    const auto most =
        are_units ? static_cast<std::size_t>(most_bundles_of_full_slots(problem)) : num_kept - 1;
    return unfilled(plan, true, most);
  }

  const bool is_searched = options.balance && look == Look::search;
  FoundSlots found =
      is_searched ? search_with_effort(plan, problem) : FoundSlots{.slots = deal_in_order(problem)};
  if (is_full) {
    auto filled = find_filled(plan, problem, std::move(found), is_searched);
    if (!filled) return unfilled(plan, false, num_kept - 1);
    found = *std::move(filled);
  }
  set_slots(problem, found.slots, plan);
  set_prediction(plan);
  set_oversized(problem, plan);
  plan.lower_bound_ns = believed_bound(found.bound, plan.predicted_step_ns, problem.num_items());
  return {};
}

}  // namespace isochron
