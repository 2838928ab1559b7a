#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// How long the slots of a pipeline should be, in parts of the longest (1000), in the order in which
// they run: short ones at both ends fill and drain it sooner than equal ones do.
[[nodiscard]] std::vector<std::int64_t> slot_profile(const PipelineShape& shape,
                                                     std::int32_t num_slots, Pass pass,
                                                     double forward_share);

}  // namespace isochron
