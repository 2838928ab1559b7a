#pragma once

#include <cstdint>
#include <span>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// No order of these micro-batches through a pipeline takes less; 2^62 + 1 stands for anything above
// 2^62, as in PipelineTime. Exact for one stage, for one slot, and for a pass that is forward only
// over equal stages. Never below what DESIGN 6 gives for equal stages. The order of `costs` does
// not matter. O(min(stages, slots) * slots * log(slots) + slots * chunks), and about `max_work`
// operations more, which may make it better.
[[nodiscard]] Nanoseconds order_bound(std::span<const PassCost> costs, const PipelineShape& shape,
                                      Pass pass, std::int64_t max_work = 0);

// Not above order_bound(), in a fraction of its time.
[[nodiscard]] Nanoseconds quick_order_bound(std::span<const PassCost> costs,
                                            const PipelineShape& shape, Pass pass);

}  // namespace isochron
