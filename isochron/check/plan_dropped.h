#pragma once

#include "isochron/check/plan_view.h"

namespace isochron::check {

// Sequences are dropped only if that was asked for, from the end, whole prompt groups where they
// are kept, never all of them, and not where a micro-batch of the plan has room for the next one.
// Relies on the rules of plan_places.h and plan_groups.h.
[[nodiscard]] Violation find_dropped_violation(const PlanView& view);

}  // namespace isochron::check
