#pragma once

#include "isochron/check/plan_view.h"

// What `short` decides: too few sequences for the slots that are required. All rely on the rules of
// plan_places.h and plan_groups.h.

namespace isochron::check {

// Sequences are dropped only if that was asked for, from the end, whole prompt groups where they
// are kept, never all of them, and not where a micro-batch of the plan has room for the next one.
[[nodiscard]] Violation find_dropped_violation(const PlanView& view);

// Placeholders stand only where counts are equal and `short` is empty, and only if there is nothing
// to put there: no micro-batch of several sequences could give one away. A slot of placeholders
// alone only completes a multiple.
[[nodiscard]] Violation find_placeholder_violation(const PlanView& view);

}  // namespace isochron::check
