#pragma once

#include <span>

#include "isochron/step/step_plan.h"

namespace isochron {

// Adds sequences to a micro-batch of the plan that has room for all of them: of those, to the one
// that costs least. False if there is none; the plan is then as it was.
[[nodiscard]] bool join(std::span<const SequenceId> sequences, StepPlan& plan);

}  // namespace isochron
