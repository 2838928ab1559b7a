#pragma once

#include <cstddef>

#include "isochron/plan/plan_units.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Plans the most first units of the batch that have a plan without placeholders, and names the
// others in `dropped`. `first` is what came of all of them: no plan.
//
// Where rows must divide, fewer units may have a plan though more have none: all numbers are tried
// then, for some seconds.
[[nodiscard]] Outcome plan_fewer_units(StepPlan& plan, const Outcome& first);

}  // namespace isochron
