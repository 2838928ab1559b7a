#pragma once

#include "isochron/core/int128.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// No order of the rows of `costs`, at least one, takes less time to train: the journey of one of
// the largest through all chunks, with all that the first stage does before and after it. For any
// shape; where there are no virtual stages order_bound() knows better ones.
[[nodiscard]] Int128 journey_bound(const ChunkCosts& costs, const PipelineShape& shape);

}  // namespace isochron
