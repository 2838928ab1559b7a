// 1F1B and interleaved 1F1B, ordered as Megatron-LM does (Narayanan et al., 2021).
//
// All stages see the same sequence of visits: `group` slots through the first of their chunks, the
// same slots through the next one, and so on, then the next `group` slots. Backward visits follow
// the same sequence with the chunks reversed. A stage runs a warm-up of forwards, long enough for
// the first slot to come back, then one forward and one backward in turn, then what is left:
//
//   stage 0   F0 F1 B0 F2 B1 F3 B2 B3        2 stages, 4 slots
//   stage 1   F0 B0 F1 B1 F2 B2 F3 B3

#include "isochron/schedule/pipeline_schedule.h"

#include <algorithm>

#include "isochron/core/require.h"
#include "isochron/schedule/require_schedule.h"

namespace isochron {

namespace {

PipelineOperation visit(const PipelineShape& shape, std::int64_t stage, std::int64_t k,
                        Direction direction) {
  const std::int64_t per_round = std::int64_t{shape.group} * shape.virtual_;
  const std::int64_t in_round = k % per_round;
  std::int64_t layer = in_round / shape.group;  // which of the chunks of the stage
  if (direction == Direction::backward) layer = shape.virtual_ - 1 - layer;
  return {.slot = static_cast<std::int32_t>(k / per_round * shape.group + in_round % shape.group),
          .chunk = static_cast<std::int32_t>(layer * shape.stages + stage),
          .direction = direction};
}

}  // namespace

std::int64_t num_warmup_visits(const PipelineShape& shape, std::int32_t stage) {
  const std::int64_t below = shape.stages - 1 - stage;
  if (shape.virtual_ == 1) return below;
  return 2 * below + std::int64_t{shape.virtual_ - 1} * shape.group;
}

void require_schedule(const PipelineShape& shape, std::int32_t num_slots) {
  require_valid(Topology{.capacity = 1, .pipeline = shape});
  require(num_slots >= 0, "schedule", "num_slots is {}, must be at least 0", num_slots);
  require(num_slots % shape.group == 0, "schedule",
          "num_slots is {}, must be a multiple of pipeline.group {}", num_slots, shape.group);
}

PipelineSchedule pipeline_schedule(const PipelineShape& shape, std::int32_t num_slots, Pass pass) {
  require_schedule(shape, num_slots);
  const std::int64_t num_visits = std::int64_t{num_slots} * shape.virtual_;
  PipelineSchedule schedule(static_cast<std::size_t>(shape.stages));
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    auto& operations = schedule[static_cast<std::size_t>(stage)];
    const auto run = [&](std::int64_t k, Direction direction) {
      operations.push_back(visit(shape, stage, k, direction));
    };
    const bool is_train = pass == Pass::train;
    operations.reserve(static_cast<std::size_t>(num_visits) * (is_train ? 2 : 1));
    const std::int64_t warmup =
        is_train ? std::min(num_visits, num_warmup_visits(shape, stage)) : num_visits;
    for (std::int64_t k = 0; k < warmup; ++k) run(k, Direction::forward);
    if (!is_train) continue;
    for (std::int64_t k = 0; k < num_visits; ++k) {
      if (warmup + k < num_visits) run(warmup + k, Direction::forward);
      run(k, Direction::backward);
    }
  }
  return schedule;
}

}  // namespace isochron
