#pragma once

#include <span>
#include <string>
#include <vector>

#include "isochron/step/step_plan.h"

namespace isochron {

// A plan, and what it breaks in the words of isochron/check; empty if it breaks nothing.
struct ReportedStep {
  StepPlan plan;
  std::string violation;
};

// A column of the report: one plan, or the plans of successive steps.
struct ReportEntry {
  std::string name;
  std::vector<ReportedStep> steps;
};

// One HTML file that shows the entries side by side, the first as "before": summary, timeline,
// load, tokens, memory and padding. It needs no other file and no network. A plan with a violation
// is drawn hatched under a banner, one without micro-batches shows its reason.
//
// All text of entries is data: none of it can become markup or script. Equal entries give equal
// bytes. Linear in the size of the plans and their timelines.
[[nodiscard]] std::string report_html(std::span<const ReportEntry> entries);

}  // namespace isochron
