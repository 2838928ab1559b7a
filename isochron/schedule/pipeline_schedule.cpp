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

// What a stage visits, whichever it is.
struct Visit {
  std::int32_t slot;
  std::int32_t layer;  // which of the chunks of the stage
};

std::vector<Visit> visits_of(const PipelineShape& shape, std::int32_t num_slots) {
  std::vector<Visit> visits;
  visits.reserve(static_cast<std::size_t>(num_slots) * static_cast<std::size_t>(shape.virtual_));
  for (std::int32_t first = 0; first < num_slots; first += shape.group) {
    for (std::int32_t layer = 0; layer < shape.virtual_; ++layer) {
      for (std::int32_t i = 0; i < shape.group; ++i) {
        visits.push_back({.slot = first + i, .layer = layer});
      }
    }
  }
  return visits;
}

std::vector<PipelineOperation> operations_of(const PipelineShape& shape,
                                             const std::vector<Visit>& visits, Pass pass,
                                             std::int32_t stage) {
  const bool is_train = pass == Pass::train;
  std::vector<PipelineOperation> operations;
  operations.reserve(visits.size() * (is_train ? 2 : 1));
  const auto run = [&](const Visit& visit, Direction direction) {
    const std::int32_t layer =
        direction == Direction::forward ? visit.layer : shape.virtual_ - 1 - visit.layer;
    operations.push_back(
        {.slot = visit.slot, .chunk = layer * shape.stages + stage, .direction = direction});
  };
  std::size_t num_begun = visits.size();
  if (is_train) {
    num_begun = std::min(num_begun, static_cast<std::size_t>(num_warmup_visits(shape, stage)));
  }
  for (std::size_t k = 0; k < num_begun; ++k) run(visits[k], Direction::forward);
  if (!is_train) return operations;
  for (const Visit& visit : visits) {
    if (num_begun < visits.size()) run(visits[num_begun++], Direction::forward);
    run(visit, Direction::backward);
  }
  return operations;
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
  const std::vector<Visit> visits = visits_of(shape, num_slots);
  PipelineSchedule schedule;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    schedule.push_back(operations_of(shape, visits, pass, stage));
  }
  return schedule;
}

std::vector<PipelineOperation> first_stage_schedule(const PipelineShape& shape,
                                                    std::int32_t num_slots, Pass pass) {
  require_schedule(shape, num_slots);
  return operations_of(shape, visits_of(shape, num_slots), pass, 0);
}

}  // namespace isochron
