#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"
#include "isochron/step/topology.h"

// What max_activation_bytes means for a plan.

namespace isochron {

// Why no plan keeps the limit: an item alone, or the longest with as many others as are in flight
// in any plan. None if neither is known to break it.
[[nodiscard]] std::optional<std::string> find_memory_obstacle(const StepPlan& plan,
                                                              const Problem& problem);

// Without stages a limit on activations is one on the tokens of a micro-batch: the topology with
// that capacity.
[[nodiscard]] Topology within_memory(const StepPlan& plan);

// Bytes over the limit.
[[nodiscard]] std::int64_t memory_excess(const StepPlan& plan);

// Why the plan that was found is none, if it holds more activations than it may.
[[nodiscard]] std::optional<std::string> find_memory_excess(const StepPlan& plan);

}  // namespace isochron
