#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"
#include "isochron/plan/slots/slot_search.h"

namespace isochron {

// Slots with their groups on ranks.
[[nodiscard]] SlotDraft draft_of(const std::vector<PackedSlot>& slots, const SlotPlaces& places);

enum class PackCare { rough, proper };

// Packs the items of a question into slots, for one limit after the other.
class SlotPacker {
 public:
  explicit SlotPacker(const Problem& problem);

  // Slots whose groups take at most `limit` where they can, so that there are about as many as the
  // whole work has limits. The fewer the slots of a pipeline, the longer it fills and drains. No
  // group is smaller than `base`, one of the sizes. None if it is soon seen that they take more
  // than `most`.
  [[nodiscard]] SlotDraft pack(Nanoseconds limit, std::int32_t base, PackCare care,
                               Nanoseconds most = std::numeric_limits<Nanoseconds>::max()) const;

 private:
  const Problem& problem_;
  SlotItems items_;
  SlotPlaces places_;
  SlotBuilder builder_;
};

}  // namespace isochron
