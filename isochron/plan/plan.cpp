// Policies first, then a search for the mode, then the plan as data.
//
// Whatever the mode, the search leaves groups in slots; what simulate() says of them is predicted.

#include "isochron/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>

#include "isochron/core/require.h"
#include "isochron/core/sequences.h"
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

// The rows of the first `num_kept` units.
std::int64_t num_rows_of(const StepPlan& plan, std::size_t num_kept) {
  if (plan.options.keep_groups == KeepGroups::none) return static_cast<std::int64_t>(num_kept);
  std::int64_t num_rows = 0;
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    num_rows += unit_of(plan, i) < num_kept ? 1 : 0;
  }
  return num_rows;
}

// Fewer leave a group without one, however they are spread.
std::int64_t fewest_items(const StepPlan& plan) {
  const PipelineShape& shape = plan.topology.pipeline;
  const ContextMode mode = context_mode(plan.options.context);
  const bool is_fixed = mode.kind == ContextMode::Kind::fixed;
  const std::int64_t num_groups = is_fixed ? plan.topology.ranks / mode.size : 1;
  return num_groups * shape.group;
}

// Whether what runs has to divide by options.pad_multiple.
bool must_divide(const PlanOptions& options) {
  return *options.pad != Pad::uneven && options.pad_multiple > 1;
}

// Why there is no plan without placeholders.
std::string short_text(const StepPlan& plan, bool is_proved) {
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

// For a plan that is none yet: some milliseconds, and nothing for more items than that may place.
std::int64_t work_of_trial(const Problem& problem) {
  constexpr std::int32_t few = 24;
  return problem.num_items() <= few ? 50'000 : 0;
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
      if (is_oversized || tokens / group.ranks.size > within_memory(plan).capacity ||
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

}  // namespace

StepPlan plan_step(const Batch& batch, const Topology& topology, const CostModel& cost,
                   const PlanOptions& options) {
  StepPlan plan;
  plan.options = resolved(options, topology);
  plan.topology = topology;
  std::vector<double>& shares = plan.topology.pipeline.shares;
  if (std::adjacent_find(shares.begin(), shares.end(), std::not_equal_to<>()) == shares.end()) {
    shares.clear();  // equal stages
  }
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
  for (std::size_t i = 0; i < batch.groups.size(); ++i) {
    const PromptGroupId group = batch.groups[i];
    const std::size_t num_names = batch.group_names.size();
    require(group.value() >= 0 && group.index() < num_names, where,
            "groups[{}] is {}, but there are {} group_names", i, group.value(), num_names);
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
  bool is_proved = true;  // that there is no plan, of however few sequences
  const auto note_short = [&](bool is_excluded) {
    is_short = true;
    is_proved = is_proved && is_excluded;
    reason = short_text(plan, is_proved);
  };
  const bool is_full = must_be_full(plan.options);
  bool are_too_few = false;  // for any slots at all
  const auto is_answered = [&](std::size_t num_kept, bool is_searched) {
    // What is left of the rows has to divide as well.
    const std::int64_t num_missing =
        num_padding_rows(num_rows_of(plan, num_kept), plan.options.pad_multiple);
    if (plan.options.pad == Pad::error && num_missing > 0) {
      note_short(true);
      return false;
    }
    if (plan.options.pad == Pad::rows) plan.padding_rows = static_cast<std::int32_t>(num_missing);
    Problem problem(work_of(plan, num_kept), within_memory(plan), cost, plan.options);
    is_short = false;
    if (auto obstacle = find_obstacle(plan, problem)) {
      reason = std::move(*obstacle);
      is_short = are_added_rows_at_fault(plan, num_kept);  // fewer rows may need none
      return false;
    }
    are_too_few = is_full && problem.num_items() < fewest_items(plan);
    if (are_too_few || (is_full && are_full_slots_excluded(problem))) {
      note_short(true);
      return false;
    }
    const bool is_planned = plan.options.balance && is_searched;
    auto [slots, bound] = is_planned ? search_with_effort(plan, problem)
                                     : FoundSlots{.slots = deal_in_order(problem)};
    if (is_full && has_placeholder(slots)) {
      if (auto full = FullSlots(problem).find(slots)) slots = *std::move(full);
    }
    const auto keeps_all = [&](const DraftSlots& each) {
      return !has_placeholder(each) && excess_with(problem, each, plan) == 0;
    };
    if (is_full && is_planned && !keeps_all(slots)) {
      // Where placeholders are allowed, other slots are looked for, which may need none.
      FoundSlots others = search_with_placeholders(plan, problem);
      if (keeps_all(others.slots)) std::tie(slots, bound) = std::tie(others.slots, others.bound);
    }
    if (is_full && has_placeholder(slots)) {
      auto full = try_full_slots(problem, plan.topology.pipeline.group, work_of_trial(problem));
      if (!full) {
        note_short(false);
        return false;
      }
      slots = *std::move(full);
    }
    set_slots(problem, slots, plan);
    set_prediction(plan);
    // A bound that a plan beats by more than roundings, of every item and of very long times, is
    // none: better that than a step called optimal which is not.
    const Nanoseconds rounded = 1 + problem.num_items() / 2 + (bound >> 50);
    const bool is_beaten = bound - rounded > plan.predicted_step_ns;
    plan.lower_bound_ns = is_beaten ? 0 : std::min(bound, plan.predicted_step_ns);
    set_oversized(problem, plan);
    return true;
  };
  std::size_t kept = num_units(plan);
  bool has_answer = is_answered(kept, true);
  const bool is_dropped = !has_answer && plan.options.short_ == Short::drop;
  const std::string first_reason = reason;
  // What can be filled, shows without a search. Of rows that divide a few less may be more, which
  // ends after some seconds.
  std::int64_t left = must_divide(plan.options) ? 100'000'000 : max_total_cost;  // rows
  while (is_dropped && !has_answer && is_short && kept > 1 &&
         (!are_too_few || must_divide(plan.options))) {
    left -= std::ssize(plan.batch.lengths) + plan.padding_rows;
    if (left < 0) note_short(false);
    if (left < 0) break;
    has_answer = is_answered(--kept, false);
  }
  if (is_dropped && has_answer && !is_answered(kept, true)) has_answer = is_answered(kept, false);
  if (has_answer && !must_divide(plan.options)) {
    while (kept < num_units(plan) && has_joined(kept, plan)) ++kept;
  }
  const auto none = [&](Status status, std::string why) {
    plan.padding_rows = rows.num_padding;
    return without_answer(std::move(plan), status, std::move(why));
  };
  if (!has_answer && kept < num_units(plan)) {
    reason = is_proved ? first_reason : short_text(plan, false);
  }
  if (!has_answer) return none(is_proved ? Status::infeasible : Status::unknown, reason);
  if (auto excess = find_memory_excess(plan)) {
    return none(Status::unknown, std::move(*excess));
  }
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (unit_of(plan, i) >= kept) plan.dropped.emplace_back(static_cast<std::int32_t>(i));
  }
  plan.status = plan.predicted_step_ns == plan.lower_bound_ns ? Status::optimal : Status::feasible;
  return plan;
}

}  // namespace isochron
