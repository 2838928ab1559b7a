#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isochron/report/report.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The rules that a plan breaks as find_violations() of isochron/check words them, the first few,
// that of a wrong hash last; empty if it breaks none. Throws what that throws.
[[nodiscard]] std::string violation_text(std::string_view plan_json);

// A plan and its violation_text().
[[nodiscard]] ReportedStep checked_step(StepPlan plan);

// Plans that are shown alone, behind what would be run instead on the same batches: `naive`, then
// `verl 0.9.1`, then `planned` itself. A baseline that breaks an option of its plan has a
// violation; where verl raises, that is its text. Throws what naive_plan() throws.
[[nodiscard]] std::vector<ReportEntry> beside_baselines(ReportEntry planned);

}  // namespace isochron
