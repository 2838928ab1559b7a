#pragma once

#include <vector>

#include "isochron/step/topology.h"

namespace isochron {

// A rank that does work in the time of a step: work * (1 - slope) + longest slot * wait <= time.
struct RoomLine {
  double slope = 0;
  double wait = 0;
};

// Lines for all numbers of slots of a training pass, in a pipeline of equal stages of which each
// has several chunks; without transfers and but for roundings, in a time of stages * step. Each
// shape is worked out once in a process.
[[nodiscard]] std::vector<RoomLine> long_slot_lines(const PipelineShape& shape,
                                                    double forward_share);

}  // namespace isochron
