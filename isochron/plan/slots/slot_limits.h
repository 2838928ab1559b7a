#pragma once

#include <cstddef>
#include <vector>

#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// Lengths for the longest of a few slots that hold what stands dearest first in `work`: what one of
// the dearest items takes on a group of some size. The `count` that promise the least time, best
// first.
[[nodiscard]] std::vector<Nanoseconds> promising_limits(const SlotItems& items,
                                                        const std::vector<ItemId>& work,
                                                        std::size_t count);

}  // namespace isochron
