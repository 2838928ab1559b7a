#pragma once

#include <optional>
#include <vector>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

// The operations of all stages in one order in which they can run one after the other: each after
// those before it on its stage and after what it needs. A forward needs the forward on the chunk
// before, a backward the one on the chunk behind, on the last chunk its own forward. None if the
// stages wait for each other for ever. Every operation stands once in the schedule, with slots from
// 0 to num_slots - 1, on the stage of its chunk. O(operations + stages * turns), where the turns of
// 1F1B are about its slots.
[[nodiscard]] std::optional<std::vector<PipelineOperation>> find_execution_order(
    const PipelineSchedule& schedule, const PipelineShape& shape, std::int32_t num_slots);

// Whether another stage waits for the operation: not at the turn from forward to backward, nor at
// the end.
[[nodiscard]] bool is_sent_on(const PipelineOperation& operation, const PipelineShape& shape);

}  // namespace isochron
