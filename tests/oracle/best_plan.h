#pragma once

#include <optional>

#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron::oracle {

// The least predicted step time of all valid plans for a question; nothing if there is none.
//
// Exact by exhaustion, for tiny questions: up to 10 units (sequences, or prompt groups that stay in
// a micro-batch) on 8 ranks with sync microbatch or free counts; 5 on 6 ranks with sync step and
// equal counts; 4 on 4 with stages too, on 3 with virtual ones. Each prompt group kept on ranks
// multiplies the work by the number of ranges.
//
// Where counts are equal a plan has placeholders only if no group of it could give a unit to their
// ranks, as isochron/check judges it. A unit that fits no admissible range and may stand alone
// takes all ranks if the context is dynamic. Throws std::invalid_argument for what it does not
// know: padding rows, a batch dealt in order, a limit on activations without stages.
[[nodiscard]] std::optional<Nanoseconds> best_step_time(const Batch& batch,
                                                        const Topology& topology,
                                                        const CostModel& cost,
                                                        const PlanOptions& options);

}  // namespace isochron::oracle
