#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/isochron/run_lines.h"
#include "isochron/report/run_report.h"

namespace isochron {

struct RunMetrics {
  std::vector<MetricCurve> curves;  // ascending by name
  std::vector<std::string> notes;
};

// The metrics of a run, a line per step: {"step": N, "data": {name: number}}. A step may have
// several lines. null is a number that is none. A step before the last one means that the run was
// resumed there: what stood from that step on is forgotten. A value of another kind damages its
// line. At most 4096 names.
[[nodiscard]] RunMetrics read_metrics(std::istream& stream, std::string_view file,
                                      const CountBytes& count_bytes = {});

}  // namespace isochron
