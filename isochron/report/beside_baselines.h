#pragma once

#include <vector>

#include "isochron/report/report.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A plan and what find_violation() of isochron/check says of it.
[[nodiscard]] ReportedStep checked_step(StepPlan plan);

// Plans that are shown alone, behind what would be run instead on the same batches: `naive`, then
// `verl 0.9.1`, then `planned` itself. Where verl raises, the violation is its text. Throws what
// naive_plan() throws.
[[nodiscard]] std::vector<ReportEntry> beside_baselines(ReportEntry planned);

}  // namespace isochron
