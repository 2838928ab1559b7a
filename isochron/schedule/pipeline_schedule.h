#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

enum class Direction { forward, backward };

// One visit of a slot to one chunk of layers.
struct PipelineOperation {
  std::int32_t slot = 0;
  std::int32_t chunk = 0;  // 0 to stages * virtual - 1; on stage chunk % stages
  Direction direction = Direction::forward;

  bool operator==(const PipelineOperation&) const = default;
};

// The operations of each stage, in the order in which it runs them.
using PipelineSchedule = std::vector<std::vector<PipelineOperation>>;

// 1F1B, interleaved if there are virtual stages: after a warm-up of forwards every stage alternates
// forward and backward, so that no more slots are in flight than the pipeline is deep. Forward
// only: the forwards in order. Throws std::invalid_argument for an invalid shape, or a number of
// slots that is negative or that, with virtual stages, shape.group does not divide.
[[nodiscard]] PipelineSchedule pipeline_schedule(const PipelineShape& shape, std::int32_t num_slots,
                                                 Pass pass);

// What that says of the first stage.
[[nodiscard]] std::vector<PipelineOperation> first_stage_schedule(const PipelineShape& shape,
                                                                  std::int32_t num_slots,
                                                                  Pass pass);

// Forwards that a stage runs before its first backward follows one, if there are as many: p - 1 -
// stage, and 2 (p - 1 - stage) + (v - 1) group with v virtual stages.
[[nodiscard]] std::int64_t num_warmup_visits(const PipelineShape& shape, std::int32_t stage);

}  // namespace isochron
