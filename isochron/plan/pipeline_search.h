#pragma once

#include "isochron/plan/problem.h"
#include "isochron/plan/slots.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A step of ranks that are pipelines of several stages. `plan` holds the question; `bound` becomes
// a time that no such step beats, for a training pass.
[[nodiscard]] DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan,
                                         std::int64_t work, Nanoseconds& bound);

}  // namespace isochron
