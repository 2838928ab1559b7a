// Policies first: what the question says, padding rows, then a plan of all units, or of fewer where
// these may be dropped. Whatever the mode, the search leaves groups in slots; what simulate() says
// of them is predicted.

#include "isochron/plan/plan.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "isochron/core/require.h"
#include "isochron/core/sequences.h"
#include "isochron/pad/pad.h"
#include "isochron/plan/drop.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_units.h"
#include "isochron/plan/plan_work.h"

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

void require_valid(const Batch& batch, KeepGroups keep_groups) {
  const std::size_t num_rows = batch.lengths.size();
  require(num_rows >= 1, where, "there are no sequences, must be at least 1");
  check_lengths(where, batch.lengths, num_rows);
  require(batch.extra_cost_ns.empty() || batch.extra_cost_ns.size() == num_rows, where,
          "extra_cost_ns has {} values, must have {} as there are lengths",
          batch.extra_cost_ns.size(), num_rows);
  if (keep_groups != KeepGroups::none) {
    require(!batch.groups.empty(), where, "keep_groups is {}, but the batch has no groups",
            name_of(keep_groups));
    check_groups(where, batch.groups, num_rows);
  }
  for (std::size_t i = 0; i < batch.groups.size(); ++i) {
    const PromptGroupId group = batch.groups[i];
    const std::size_t num_names = batch.group_names.size();
    require(group.value() >= 0 && group.index() < num_names, where,
            "groups[{}] is {}, but there are {} group_names", i, group.value(), num_names);
  }
}

// What is asked for, with nothing left open.
StepPlan question_of(const Batch& batch, const Topology& topology, const CostModel& cost,
                     const PlanOptions& options) {
  StepPlan plan;
  plan.options = resolved(options, topology);
  plan.topology = topology;
  std::vector<double>& shares = plan.topology.pipeline.shares;
  if (std::adjacent_find(shares.begin(), shares.end(), std::not_equal_to<>()) == shares.end()) {
    shares.clear();  // equal stages
  }
  plan.cost = cost;
  require_valid(batch, plan.options.keep_groups);
  plan.batch = batch;
  return plan;
}

}  // namespace

StepPlan plan_step(const Batch& batch, const Topology& topology, const CostModel& cost,
                   const PlanOptions& options) {
  StepPlan plan = question_of(batch, topology, cost, options);
  const PaddedRows rows =
      pad_rows(static_cast<std::int32_t>(batch.lengths.size()),
               {.pad = *plan.options.pad, .multiple = plan.options.pad_multiple});
  if (rows.status == Status::infeasible) {
    return without_answer(std::move(plan), Status::infeasible, rows.reason);
  }
  Outcome outcome = plan_units(plan, num_units(plan), Look::search);
  if (outcome.kind != Outcome::Kind::found && plan.options.short_ == Short::drop) {
    outcome = plan_fewer_units(plan, outcome);
  }
  const auto none = [&](Status status, std::string why) {
    plan.padding_rows = rows.num_padding;
    return without_answer(std::move(plan), status, std::move(why));
  };
  if (outcome.kind != Outcome::Kind::found) {
    return none(outcome.is_proved ? Status::infeasible : Status::unknown,
                std::move(outcome.reason));
  }
  if (auto excess = find_memory_excess(plan)) return none(Status::unknown, *std::move(excess));
  plan.status = plan.predicted_step_ns == plan.lower_bound_ns ? Status::optimal : Status::feasible;
  return plan;
}

}  // namespace isochron
