#pragma once

#include <cstdint>

#include "isochron/step/topology.h"

namespace isochron {

// Throws what pipeline_schedule() throws.
void require_schedule(const PipelineShape& shape, std::int32_t num_slots);

}  // namespace isochron
