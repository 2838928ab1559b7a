#pragma once

#include <string>

#include "isochron/simulate/simulate.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The timeline of a plan in the trace format of Chrome and Perfetto: a process per rank, a thread
// per stage, a complete event per operation with its slot, group size, ranks, sequences and padded
// tokens per rank. Times are in microseconds. `timeline` is simulate(plan).
[[nodiscard]] std::string trace_json(const StepPlan& plan, const Timeline& timeline);

}  // namespace isochron
