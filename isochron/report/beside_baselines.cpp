#include "isochron/report/beside_baselines.h"

#include <fmt/format.h>

#include <utility>

#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"

namespace isochron {

namespace {

using MakeBaseline = StepPlan (*)(const Batch&, const Topology&, const CostModel&,
                                  const PlanOptions&, Nanoseconds);

// What would be run instead of each plan, through the same checker.
ReportEntry baseline_of(const ReportEntry& planned, const char* name, MakeBaseline make) {
  ReportEntry entry = {.name = name, .steps = {}};
  for (const auto& [plan, violation] : planned.steps) {
    StepPlan other = make(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
    other.first_sequence = plan.first_sequence;
    if (other.microbatches.empty()) {
      std::string raised = fmt::format("{} raises: {}", name, other.reason);
      entry.steps.push_back({.plan = std::move(other), .violation = std::move(raised)});
    } else {
      entry.steps.push_back(checked_step(std::move(other)));
    }
  }
  return entry;
}

}  // namespace

ReportedStep checked_step(StepPlan plan) {
  std::string violation = find_violation(to_json(plan)).value_or("");
  return {.plan = std::move(plan), .violation = std::move(violation)};
}

std::vector<ReportEntry> beside_baselines(ReportEntry planned) {
  std::vector<ReportEntry> entries;
  entries.push_back(baseline_of(planned, "naive", naive_plan));
  entries.push_back(baseline_of(planned, "verl 0.9.1", verl_plan));
  entries.push_back(std::move(planned));
  return entries;
}

}  // namespace isochron
