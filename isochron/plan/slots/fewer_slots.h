#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"

namespace isochron {

// The same items without slots that the others have room for, where that is shorter: what a slot
// costs whatever it holds is worth groups that suit its items less. Never longer than `slots`. What
// it takes is taken off `work`; it ends when there is none left.
[[nodiscard]] std::vector<PackedSlot> fewer_slots(const SlotItems& items, const SlotPlaces& places,
                                                  std::vector<PackedSlot> slots,
                                                  std::int64_t& work);

}  // namespace isochron
