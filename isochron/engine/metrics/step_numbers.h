#pragma once

#include <cstdint>
#include <optional>

#include "isochron/cost/hardware.h"
#include "isochron/cost/model_shape.h"
#include "isochron/engine/execute/engine.h"
#include "isochron/engine/metrics/numbers.h"

namespace isochron {

// What MFU is measured against.
struct Machine {
  ModelShape model;
  std::optional<Hardware> hardware;  // of each rank; none: unknown
};

// The numbers of one update: loss and gradient, how plan and execution compare, tokens per second,
// memory, and the spread of tokens and cost over the ranks. docs/training.md lists the names. What
// is unknown is left out.
[[nodiscard]] Numbers step_numbers(const StepPlan& plan, const StepResult& result,
                                   const Machine& machine);

}  // namespace isochron
