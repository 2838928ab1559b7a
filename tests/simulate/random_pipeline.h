#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

struct RandomPipeline {
  PipelineShape shape;
  std::vector<PassCost> costs;
  Pass pass = Pass::train;
};

struct RandomPipelineOptions {
  std::int32_t max_stages = 7;
  std::int32_t max_slots = 12;
};

// Any shape: one stage or several, virtual stages, transfers, unequal shares, forward only.
inline RandomPipeline random_pipeline(std::uint64_t seed, RandomPipelineOptions options = {}) {
  Random random(seed);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random.between(low, high));
  };
  RandomPipeline result;
  PipelineShape& shape = result.shape;
  shape.stages = draw(1, options.max_stages);
  std::int32_t num_slots = draw(0, options.max_slots);
  if (shape.stages > 1 && shape.stages <= options.max_slots && draw(0, 1) == 1) {
    shape.virtual_ = draw(2, 4);
    shape.group = draw(shape.stages, options.max_slots);
    num_slots = shape.group * draw(0, options.max_slots / shape.group);
  }
  if (draw(0, 1) == 1) shape.transfer_ns = draw(0, 50);
  if (draw(0, 1) == 1) {
    for (std::int32_t i = 0; i < shape.num_chunks(); ++i) {
      shape.shares.push_back(0.1 + random.unit());
    }
    const double sum = std::accumulate(shape.shares.begin(), shape.shares.end(), 0.0);
    for (double& share : shape.shares) share /= sum;
  }
  result.pass = draw(0, 3) == 0 ? Pass::forward : Pass::train;
  const bool is_proportional = draw(0, 1) == 1;
  for (std::int32_t i = 0; i < num_slots; ++i) {
    const Nanoseconds forward = draw(0, draw(0, 1) == 1 ? 2000 : 200);
    const Nanoseconds backward = is_proportional ? 2 * forward : draw(0, 1000);
    result.costs.push_back(
        {.forward = forward, .backward = result.pass == Pass::train ? backward : 0});
  }
  return result;
}

// Lengths of documents are about lognormal: a cost with median 10^6 and this sigma, a third of it
// forward.
inline std::vector<PassCost> lognormal_costs(std::uint64_t seed, std::int32_t count, double sigma) {
  Random random(seed);
  std::vector<PassCost> costs;
  for (std::int32_t i = 0; i < count; ++i) {
    double normal = -6;  // Irwin and Hall: twelve uniform numbers
    for (int draw = 0; draw < 12; ++draw) normal += random.unit();
    costs.push_back(split_cost(std::llround(1e6 * std::exp(sigma * normal)), 1.0 / 3));
  }
  return costs;
}

}  // namespace isochron
