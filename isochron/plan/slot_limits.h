#pragma once

#include <cstddef>
#include <vector>

#include "isochron/plan/slot_items.h"

namespace isochron {

// Lengths for the longest slot of a step of few slots: what one of the dearest items takes on a
// group of some size. The `count` that promise the shortest step, best first.
[[nodiscard]] std::vector<Nanoseconds> promising_limits(const SlotItems& items, std::size_t count);

}  // namespace isochron
