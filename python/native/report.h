#pragma once

#include <string>

#include "isochron/step/step_plan.h"

namespace isochron::python {

// The report of a plan beside naive packing and verl 0.9.1, as `isochron report` writes it, inside
// a frame of its own: for a notebook, whose page it neither sees nor changes.
[[nodiscard]] std::string inline_report(const StepPlan& plan);

}  // namespace isochron::python
