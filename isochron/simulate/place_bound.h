#pragma once

#include <cstdint>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// No order of the rows of `costs` through several equal stages without virtual ones trains in less
// time. About `max_work` operations, of which more make the bound better. Best where all backwards
// have the same ratio to their forwards; 0 if there are no forwards or no backwards.
[[nodiscard]] Nanoseconds place_bound(const ChunkCosts& costs, const PipelineShape& shape,
                                      std::int64_t max_work);

}  // namespace isochron
