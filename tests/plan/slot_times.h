#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/simulate/pipeline_time.h"

// Pipelines, and what slots of given costs take in them.

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

// Of up to five stages, each with two chunks or three.
inline PipelineShape random_virtual_shape(Random& random) {
  PipelineShape shape = {.stages = static_cast<std::int32_t>(random.between(2, 5))};
  shape.virtual_ = static_cast<std::int32_t>(random.between(2, 3));
  shape.group = shape.stages + static_cast<std::int32_t>(random.below(3));
  return shape;
}

}  // namespace isochron
