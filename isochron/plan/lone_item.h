#pragma once

#include <optional>

#include "isochron/plan/plan_search.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The best step of one item, which is all there is to run, with its bound; ranks idle where that is
// an error only if it cannot be helped. None if there are more items, or if it breaks a limit on
// activations.
[[nodiscard]] std::optional<FoundSlots> find_lone_item(const StepPlan& plan,
                                                       const Problem& problem);

}  // namespace isochron
