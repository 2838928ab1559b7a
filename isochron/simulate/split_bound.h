#pragma once

#include <cstdint>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// No order of the rows of `costs` through several equal stages without virtual ones trains in less
// time. About `max_work` operations, of which more make the bound better; 0 if the backwards are
// not sorted as the forwards, if there are fewer than two rows, or if costs are near 2^62.
[[nodiscard]] Nanoseconds split_bound(const ChunkCosts& costs, const PipelineShape& shape,
                                      std::int64_t max_work);

}  // namespace isochron
