#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/topology.h"

namespace isochron {

// Blocks of slots around the longest one that are not all as short as can be.
constexpr std::int32_t max_peak_blocks = 4;

// Lengths of the slots of a training pass, in the order in which they run, with which a pipeline of
// equal stages with several chunks each does about as much as it can in stages * step = 1: one of
// them is `longest`, none is longer, and none is shorter than `shortest`. Empty if there is no time
// for that. `num_slots` is a multiple of pipeline.group; transfers take no time.
[[nodiscard]] std::vector<double> virtual_peak(const PipelineShape& shape, double forward_share,
                                               std::int32_t num_slots, double longest,
                                               double shortest);

}  // namespace isochron
