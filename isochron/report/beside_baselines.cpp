#include "isochron/report/beside_baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "isochron/check/check.h"
#include "isochron/plan/baselines.h"

namespace isochron {

namespace {

using MakeBaseline = StepPlan (*)(const Batch&, const Topology&, const CostModel&,
                                  const PlanOptions&, Nanoseconds);

// What a baseline breaks of what `plan` was asked for. Dealing in order is no rule of a question.
std::string violation_of(const StepPlan& baseline, const StepPlan& plan) {
  StepPlan answer = baseline;
  answer.options = plan.options;
  answer.options.balance = baseline.options.balance;
  return violation_text(to_json(answer));
}

// The baseline, or a plan without slots whose reason is why there is none: costs beyond counting,
// or groups that the cost model does not admit.
StepPlan made_or_refused(const StepPlan& plan, MakeBaseline make) {
  StepPlan other = plan;
  try {
    other = make(plan.batch, plan.topology, plan.cost, plan.options, plan.lower_bound_ns);
    other.first_sequence = plan.first_sequence;
  } catch (const std::invalid_argument& error) {
    other.microbatches.clear();
    other.status = Status::unknown;
    other.reason = error.what();
  }
  return other;
}

// What would be run instead of each plan, through the same checker.
ReportEntry baseline_of(const ReportEntry& planned, const char* name, MakeBaseline make) {
  ReportEntry entry = {.name = name, .steps = {}};
  for (const auto& [plan, violation] : planned.steps) {
    StepPlan other = made_or_refused(plan, make);
    if (other.microbatches.empty()) {
      std::string raised = fmt::format("{} raises: {}", name, other.reason);
      entry.steps.push_back({.plan = std::move(other), .violation = std::move(raised)});
    } else {
      std::string broken = violation_of(other, plan);
      entry.steps.push_back({.plan = std::move(other), .violation = std::move(broken)});
    }
  }
  return entry;
}

}  // namespace

std::string violation_text(std::string_view plan_json) {
  std::vector<std::string> violations = find_violations(plan_json).violations;
  // An edited plan has another hash as well: what was edited says more.
  std::stable_partition(violations.begin(), violations.end(), [](const std::string& violation) {
    return !violation.starts_with("hash is ");
  });
  constexpr std::size_t max_shown = 3;  // `isochron check` names all
  std::string text;
  for (std::size_t i = 0; i < std::min(violations.size(), max_shown); ++i) {
    text += (i == 0 ? "" : "; ") + violations[i];
  }
  if (violations.size() > max_shown) {
    text += fmt::format("; and {} more", violations.size() - max_shown);
  }
  return text;
}

ReportedStep checked_step(StepPlan plan) {
  std::string violation = violation_text(to_json(plan));
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
