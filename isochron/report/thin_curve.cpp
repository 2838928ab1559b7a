#include "isochron/report/thin_curve.h"

#include <algorithm>
#include <cmath>

namespace isochron {

namespace {

// Points of [begin, end) that a pixel column shows, ascending.
std::vector<std::size_t> outline(const std::vector<double>& values, std::size_t begin,
                                 std::size_t end) {
  std::size_t low = begin;
  std::size_t high = begin;
  for (std::size_t i = begin; i < end; ++i) {
    if (std::isnan(values[i])) continue;
    if (std::isnan(values[low]) || values[i] < values[low]) low = i;
    if (std::isnan(values[high]) || values[i] > values[high]) high = i;
  }
  std::vector<std::size_t> kept = {begin, low, high, end - 1};
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

}  // namespace

MetricCurve thin_curve(const MetricCurve& curve, std::size_t num_stretches) {
  if (curve.steps.size() <= 4 * num_stretches) return curve;
  MetricCurve thinned = {.name = curve.name, .steps = {}, .values = {}};
  const std::int64_t first = curve.steps.front();
  const double length = static_cast<double>(curve.steps.back() - first) + 1;
  const auto stretch_of = [&](std::size_t i) {
    const double share = static_cast<double>(curve.steps[i] - first) / length;
    return static_cast<std::size_t>(share * static_cast<double>(num_stretches));
  };
  for (std::size_t begin = 0; begin < curve.steps.size();) {
    std::size_t end = begin + 1;
    while (end < curve.steps.size() && stretch_of(end) == stretch_of(begin)) ++end;
    for (const std::size_t i : outline(curve.values, begin, end)) {
      thinned.steps.push_back(curve.steps[i]);
      thinned.values.push_back(curve.values[i]);
    }
    begin = end;
  }
  return thinned;
}

}  // namespace isochron
