#pragma once

#include <cstdint>
#include <string>

#include "isochron/engine/execute/engine.h"

namespace isochron {

struct MeasuredModel {
  ModelShape shape;
  at::ScalarType dtype = at::kFloat;
  Recompute recompute = Recompute::none;

  [[nodiscard]] std::int64_t element_bytes() const { return dtype == at::kBFloat16 ? 2 : 4; }
};

// A step as the allocator of the CPU saw it, beside what was there before.
struct StepMemory {
  std::int64_t activations = 0;  // at most, in the backward of the layers: there are no logits
  std::int64_t all = 0;          // at most, from the first forward to the optimizer
  double loss = 0;
};

// A model with random weights that is trained on random rows of the lengths of each plan.
class MeasuredTraining {
 public:
  MeasuredTraining(World& world, const MeasuredModel& model, const EngineOptions& options);

  [[nodiscard]] StepMemory step(const StepPlan& plan);

 private:
  Decoder model_;
  ShardedAdamW optimizer_;
  Tracer tracer_;
  Engine engine_;
  std::int64_t num_steps_ = 0;
};

}  // namespace isochron
