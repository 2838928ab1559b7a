#pragma once

#include <optional>
#include <string>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

// What is wrong with a schedule, in words; nothing if it runs every slot through every chunk once
// in each direction of the pass, each on the stage of its chunk, without stages that wait for each
// other for ever, and with no more in flight than 1F1B allows: min(slots, stages - stage) slots on
// a stage, with virtual stages one visit more than its warm-up. Knows nothing of how
// pipeline_schedule() orders them.
[[nodiscard]] std::optional<std::string> find_schedule_violation(const PipelineSchedule& schedule,
                                                                 const PipelineShape& shape,
                                                                 std::int32_t num_slots, Pass pass);

}  // namespace isochron
