#pragma once

#include <cstddef>

#include "isochron/report/run_report.h"

namespace isochron {

// The curve with at most 4 points for each of `num_stretches` equally long stretches of its steps:
// the first, the last, the smallest and the largest, so that it looks the same on as many pixels. A
// curve that is not longer comes back as it is. Where a stretch has no numbers a NaN stays.
[[nodiscard]] MetricCurve thin_curve(const MetricCurve& curve, std::size_t num_stretches);

}  // namespace isochron
