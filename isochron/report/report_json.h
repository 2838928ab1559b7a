#pragma once

#include <span>
#include <string>

#include "isochron/core/json.h"
#include "isochron/report/report.h"

namespace isochron {

// What a page draws of a plan: the question, the groups, and their bars on the timeline.
[[nodiscard]] Json step_json(const ReportedStep& step);

// What the page of plans draws: every step of every entry.
[[nodiscard]] std::string report_json(std::span<const ReportEntry> entries);

}  // namespace isochron
