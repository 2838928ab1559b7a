#pragma once

#include <cstdint>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

struct FoundSlots {
  DraftSlots slots;
  Nanoseconds bound = 0;  // no plan under the same options takes less
};

// The best slots that the search for the mode of the plan finds with this effort. Of the plan only
// the question is read. Every bundle fits some size.
[[nodiscard]] FoundSlots search_plan(const StepPlan& plan, const Problem& problem,
                                     std::int64_t effort);

}  // namespace isochron
