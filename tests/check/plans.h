#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "isochron/step/step_plan.h"

// Valid plans, worked out by hand, for tests that spoil them.

namespace isochron {

inline std::vector<SequenceId> sequence_ids(std::initializer_list<std::int32_t> numbers) {
  std::vector<SequenceId> ids;
  for (const std::int32_t number : numbers) ids.emplace_back(number);
  return ids;
}

inline ContextGroup group_of(std::int64_t first, std::int64_t size,
                             std::initializer_list<std::int32_t> numbers) {
  return {.ranks = {first, size}, .sequences = sequence_ids(numbers)};
}

// One nanosecond and three bytes a token, groups for free.
inline CostModel token_cost() {
  return {.name = "tokens", .linear_ns = 1, .forward_share = 0.5, .activation_bytes_per_token = 3};
}

// Two ranks, capacity 10: 5+3 against 4+6, and 2 for the micro-batch.
inline StepPlan plain_plan() {
  StepPlan plan;
  plan.status = Status::feasible;
  plan.topology = {.ranks = 2, .capacity = 10};
  plan.options = resolved({}, plan.topology);
  plan.cost = token_cost();
  plan.cost.microbatch_ns = 2;
  plan.batch.lengths = {5, 3, 4, 6};
  plan.predicted_step_ns = 12;
  plan.lower_bound_ns = 11;
  plan.imbalance = 12.0 / 11;
  plan.peak_activation_bytes = {24, 30};
  plan.microbatches = {{group_of(0, 1, {0, 1}), group_of(1, 1, {2, 3})}};
  return plan;
}

// Four ranks, dynamic groups, capacity 8, equal counts, prompts kept in a micro-batch. The 24
// tokens of a on ranks 0 to 3, then b (12) on 0 and 1, c (4+2) on 2, and nothing left for 3.
inline StepPlan wide_plan() {
  StepPlan plan;
  plan.status = Status::optimal;
  plan.topology = {.ranks = 4, .capacity = 8};
  plan.options = resolved(
      {.context = "dynamic", .counts = Counts::equal, .keep_groups = KeepGroups::microbatch},
      plan.topology);
  plan.cost = token_cost();
  plan.batch = {.lengths = {24, 12, 4, 2},
                .extra_cost_ns = {},
                .groups = {PromptGroupId(0), PromptGroupId(1), PromptGroupId(2), PromptGroupId(2)},
                .group_names = {"a", "b", "c"}};
  plan.predicted_step_ns = 12;
  plan.lower_bound_ns = 12;
  plan.imbalance = 12.0 / 10.5;  // busy 12, 12, 12 and 6
  plan.peak_activation_bytes = {18, 18, 18, 18};
  plan.microbatches = {{group_of(0, 4, {0})},
                       {group_of(0, 2, {1}), group_of(2, 1, {2, 3}), group_of(3, 1, {})}};
  return plan;
}

// Capacity 6 and two ranks: 9 tokens stand alone over it, and one of five short ones is dropped.
inline StepPlan short_plan() {
  StepPlan plan;
  plan.status = Status::feasible;
  plan.topology = {.ranks = 2, .capacity = 6};
  plan.options = resolved(
      {.counts = Counts::equal, .oversize = Oversize::alone, .short_ = Short::drop}, plan.topology);
  plan.cost = token_cost();
  plan.batch.lengths = {5, 9, 4, 6, 5};
  plan.predicted_step_ns = 13;
  plan.lower_bound_ns = 12;
  plan.imbalance = 13.0 / 12;
  plan.peak_activation_bytes = {18, 27};
  plan.microbatches = {{group_of(0, 1, {0}), group_of(1, 1, {1})},
                       {group_of(0, 1, {3}), group_of(1, 1, {2})}};
  plan.oversized = sequence_ids({1});
  plan.dropped = sequence_ids({4});
  return plan;
}

// Nothing holds the 12 tokens.
inline StepPlan infeasible_plan() {
  StepPlan plan;
  plan.status = Status::infeasible;
  plan.reason = "sequence 1 has 12 tokens, the capacity is 10";
  plan.topology = {.ranks = 2, .capacity = 10};
  plan.options = resolved({}, plan.topology);
  plan.cost = token_cost();
  plan.batch.lengths = {5, 12};
  return plan;
}

}  // namespace isochron
