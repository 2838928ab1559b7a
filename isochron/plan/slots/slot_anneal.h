#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// For few items: moves them between the groups of slots at random, keeps what is shorter and, less
// and less often, what is longer, and returns the best slots met. Groups keep their sizes, and
// ranks that idle may get micro-batches of the smallest size. Ends at `bound` or after `num_trials`
// moves. Never worse than `slots`.
[[nodiscard]] std::vector<PackedSlot> anneal_slots(const SlotItems& items,
                                                   const std::vector<PackedSlot>& slots,
                                                   Nanoseconds bound, std::int64_t num_trials);

}  // namespace isochron
