#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

struct KnownSchedule {
  PipelineSchedule stages;
  std::vector<PipelineOperation> operations;  // of all, in an order in which they can run
};

// What pipeline_schedule() and find_execution_order() say, kept for whoever asks next in this
// process if it is small. Throws what pipeline_schedule() throws.
[[nodiscard]] std::shared_ptr<const KnownSchedule> known_schedule(const PipelineShape& shape,
                                                                  std::int32_t num_slots,
                                                                  Pass pass);

}  // namespace isochron
