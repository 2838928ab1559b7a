// The rules of a plan: who stands where, what groups may be, what policies allow, and numbers that
// follow from running it. Each rule is a function, in the file of its subject; its first violation
// speaks for it.

#include "isochron/check/plan_result.h"

#include <algorithm>
#include <cmath>

#include "isochron/check/plain_plan.h"
#include "isochron/check/plan_bound.h"
#include "isochron/check/plan_dropped.h"
#include "isochron/check/plan_groups.h"
#include "isochron/check/plan_placeholders.h"
#include "isochron/check/plan_places.h"
#include "isochron/check/plan_time.h"
#include "isochron/check/plan_view.h"
#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

// What cannot be asked, beyond what reading the plan rejects.
void require_question(const StepPlan& plan) {
  require(!plan.batch.lengths.empty(), where, "lengths has 0 elements, must have at least 1");
  require(plan.options.keep_groups == KeepGroups::none || !plan.batch.groups.empty(), where,
          "options.keep_groups is {}, but \"group\" is missing", name_of(plan.options.keep_groups));
  std::size_t num_ways = plan.cost.context.size();
  for (const ContextCost& exchange : plan.cost.context) num_ways += exchange.links.size();
  constexpr std::size_t most =
      64;  // three kinds and a few levels of network; each meets each group
  require(num_ways <= most, where, "cost.context has {} exchanges and links, must have at most {}",
          num_ways, most);
}

// The document says what was asked to the last detail.
Violation find_option_violation(const Json& document, const StepPlan& plan) {
  const auto asked = read_options<PlanOptions>(document);
  Violation found;
  PlanOptions::describe([&](const auto& field) {
    if (found || asked.*field.member == plan.options.*field.member) return;
    found = fmt::format("options.{} is {}, must be resolved to {}", field.key,
                        value_text(asked.*field.member), value_text(plan.options.*field.member));
  });
  return found;
}

// Equal plans have equal hashes, if they are written in the same way.
Violation find_hash_violation(const Json& document, const StepPlan& plan) {
  const std::string hash = fmt::format("{:016x}", plan_hash(plan));
  const std::string given = text_of(member(document, where, "hash"), where, "hash");
  return broken_unless(
      given == hash,
      "hash is {}, but {} is that of the plan as it is written: all keys, in their "
      "order",
      given, hash);
}

// Without an answer there is nothing to say about one.
Violation find_empty_answer_violation(const PlanView& view) {
  const StepPlan& plan = view.plan();
  const std::string_view status = name_of(plan.status);
  if (const auto plain = find_plain_plan(view)) {
    return fmt::format("status is {}, but {}", status, *plain);
  }
  if (!plan.microbatches.empty() || !plan.oversized.empty() || !plan.dropped.empty()) {
    return fmt::format("status is {}, so microbatches, oversized and dropped must be empty",
                       status);
  }
  if (plan.predicted_step_ns != 0 || plan.imbalance != 1) {
    return fmt::format("status is {}, so predicted_step_ns is 0 and imbalance 1, not {} and {}",
                       status, plan.predicted_step_ns, plan.imbalance);
  }
  const bool holds_nothing =
      std::all_of(plan.peak_activation_bytes.begin(), plan.peak_activation_bytes.end(),
                  [](std::int64_t bytes) { return bytes == 0; });
  return broken_unless(holds_nothing, "status is {}, so peak_activation_bytes must be 0", status);
}

Violation find_own_bound_violation(const PlanView& view) {
  const PlanBound bound = plan_bound(view);
  return broken_unless(view.plan().predicted_step_ns >= bound.step_ns,
                       "predicted_step_ns is {}, below {} from {}", view.plan().predicted_step_ns,
                       bound.step_ns, bound.from);
}

Violation find_given_bound_violation(const PlanView& view) {
  const StepPlan& plan = view.plan();
  if (plan.lower_bound_ns > plan.predicted_step_ns) {
    return fmt::format("lower_bound_ns is {}, above predicted_step_ns {}", plan.lower_bound_ns,
                       plan.predicted_step_ns);
  }
  const bool is_met = plan.lower_bound_ns == plan.predicted_step_ns;
  return broken_unless(is_met == (plan.status == Status::optimal),
                       "status is {}, but predicted_step_ns is {} and lower_bound_ns is {}",
                       name_of(plan.status), plan.predicted_step_ns, plan.lower_bound_ns);
}

// Two sums of the same numbers in another order differ by less.
bool is_close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

Violation find_memory_violation(const StepPlan& plan, const PlanTimes& times) {
  if (plan.peak_activation_bytes.size() != times.peak_activation_bytes.size()) {
    return fmt::format("peak_activation_bytes has {} ranks, must have {}",
                       plan.peak_activation_bytes.size(), times.peak_activation_bytes.size());
  }
  for (std::size_t rank = 0; rank < times.peak_activation_bytes.size(); ++rank) {
    const std::int64_t bytes = times.peak_activation_bytes[rank];
    if (plan.peak_activation_bytes[rank] != bytes) {
      return fmt::format("peak_activation_bytes[{}] is {}, the plan has {}", rank,
                         plan.peak_activation_bytes[rank], bytes);
    }
    const std::int64_t most = plan.options.max_activation_bytes;
    if (most > 0 && bytes > most) {
      return fmt::format("rank {} holds {} activation bytes, options.max_activation_bytes is {}",
                         rank, bytes, most);
    }
  }
  return std::nullopt;
}

Violation find_step_violation(const StepPlan& plan, const PlanTimes& times) {
  return broken_unless(plan.predicted_step_ns == times.step_ns,
                       "predicted_step_ns is {}, the plan takes {}", plan.predicted_step_ns,
                       times.step_ns);
}

Violation find_imbalance_violation(const StepPlan& plan, const PlanTimes& times) {
  return broken_unless(is_close(plan.imbalance, times.imbalance),
                       "imbalance is {}, the plan has {}", plan.imbalance, times.imbalance);
}

}  // namespace

Findings find_plan_violations(const Json& document, std::string_view json_text,
                              const Batch* expected) {
  const StepPlan plan = step_plan_from_json(json_text, PlanHash::ignored);
  require_question(plan);
  Findings findings;
  const auto holds = [&](Violation found) {
    if (!found) return true;
    findings.violations.push_back(*std::move(found));
    return false;
  };
  if (expected != nullptr) holds(find_difference(plan.batch, *expected));
  const bool is_resolved = holds(find_option_violation(document, plan));
  if (is_resolved) holds(find_hash_violation(document, plan));  // it is that of resolved options
  holds(find_reason_violation(plan.status, plan.reason));
  const PlanView view(plan);
  if (!has_answer(plan.status)) {
    holds(find_empty_answer_violation(view));
    return findings;
  }
  // Each of these relies on those before it.
  for (const auto rule : {find_padding_violation, find_slot_violation, find_place_violation,
                          find_size_violation, find_exchange_violation}) {
    if (!holds(rule(view))) return findings;
  }
  findings.has_places = true;
  bool is_admissible = true;
  for (const auto rule :
       {find_capacity_violation, find_max_sequences_violation, find_kept_group_violation}) {
    is_admissible = holds(rule(view)) && is_admissible;
  }
  if (is_admissible) {
    for (const auto rule :
         {find_dropped_violation, find_placeholder_violation, find_own_bound_violation}) {
      holds(rule(view));
    }
  }
  holds(find_given_bound_violation(view));
  const PlanTimes times = plan_times(view);
  for (const auto rule : {find_step_violation, find_imbalance_violation, find_memory_violation}) {
    holds(rule(plan, times));
  }
  return findings;
}

}  // namespace isochron::check
