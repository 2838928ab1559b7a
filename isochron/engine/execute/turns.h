#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/step_plan.h"

namespace isochron {

// A group that a rank is in, with its slot. Refers to the plan.
struct Turn {
  std::int32_t slot = 0;
  const ContextGroup* group = nullptr;
};

// What a rank runs, in order; placeholders run nothing.
[[nodiscard]] std::vector<Turn> turns_of(const StepPlan& plan, std::int32_t rank);

// Whether a rank may sum gradients while its last backward runs: if that slot is the last one of
// every member of its group. Otherwise a member that has more to exchange in another group could
// wait for a rank that waits for its gradients.
[[nodiscard]] bool may_overlap_reduction(const StepPlan& plan, std::int32_t rank);

// A token that others before it predict.
struct PredictedToken {
  SequenceId row;
  std::int32_t token = 0;  // its index in the row, from 1 on

  bool operator==(const PredictedToken&) const = default;
};

// The tokens whose outputs a rank computes, in the order of its micro-batches: every token after
// the first of every row is predicted on one rank. Padding rows have none.
[[nodiscard]] std::vector<PredictedToken> predicted_tokens(const StepPlan& plan, std::int32_t rank);

}  // namespace isochron
