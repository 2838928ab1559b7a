#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/simulate/pipeline_time.h"

// What slots of given costs take in a pipeline.

namespace isochron {

inline constexpr double third = 1.0 / 3;

// stages * step of slots that cost so much.
inline double time_of(const PipelineShape& shape, const std::vector<Nanoseconds>& slots,
                      double forward_share, Pass pass = Pass::train) {
  std::vector<PassCost> passes;
  for (const Nanoseconds slot : slots) {
    passes.push_back(split_cost(slot, forward_share));
    if (pass == Pass::forward) passes.back().backward = 0;
  }
  const auto count = static_cast<std::int32_t>(slots.size());
  return static_cast<double>(PipelineTime(shape, count, pass).makespan(passes)) * shape.stages;
}

inline double sum_of(const std::vector<Nanoseconds>& slots) {
  return static_cast<double>(std::accumulate(slots.begin(), slots.end(), Nanoseconds{0}));
}

// Heights in nanoseconds, of about a second each.
inline std::vector<Nanoseconds> in_nanoseconds(const std::vector<double>& heights) {
  std::vector<Nanoseconds> slots;
  for (const double height : heights) slots.push_back(std::llround(height * 1e12));
  return slots;
}

}  // namespace isochron
