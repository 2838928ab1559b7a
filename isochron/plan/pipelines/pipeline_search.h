#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A step of ranks that are pipelines of several stages, by simulate() never slower than that of any
// static size that the options admit, nor than naive_plan() where its groups are admitted. `plan`
// holds the question; no step is shorter than `bound`. Keeps options.max_activation_bytes if it
// finds slots that do.
[[nodiscard]] DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan,
                                         Nanoseconds bound, std::int64_t work);

}  // namespace isochron
