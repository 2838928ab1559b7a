#pragma once

#include <span>
#include <string>

#include "isochron/report/run_report.h"

namespace isochron {

// What the page of runs draws: figures, thinned curves, and the steps that it holds in full.
[[nodiscard]] std::string run_json(std::span<const RunRecord> runs);

}  // namespace isochron
