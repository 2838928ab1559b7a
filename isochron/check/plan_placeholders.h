#pragma once

#include "isochron/check/plan_view.h"

namespace isochron::check {

// Placeholders stand only where counts are equal and `short` is empty, and only if there is nothing
// to put there: no micro-batch of several sequences could give one away. Slots of placeholders
// alone only complete a multiple of pipeline.group. Relies on the rules of plan_places.h and
// plan_groups.h.
[[nodiscard]] Violation find_placeholder_violation(const PlanView& view);

}  // namespace isochron::check
