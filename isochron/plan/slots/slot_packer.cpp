#include "isochron/plan/slots/slot_packer.h"

#include <algorithm>
#include <utility>

namespace isochron {

SlotDraft draft_of(const std::vector<PackedSlot>& slots, const SlotPlaces& places) {
  SlotDraft draft;
  for (const PackedSlot& slot : slots) {
    auto [groups, time] = places.placed(slot);
    draft.slots.push_back(std::move(groups));
    draft.time += time;
  }
  return draft;
}

SlotPacker::SlotPacker(const Problem& problem)
    : problem_(problem), items_(problem, 0), places_(problem), builder_(items_, places_) {}

SlotDraft SlotPacker::pack(Nanoseconds limit, std::int32_t base, PackCare care,
                           Nanoseconds most) const {
  const auto sizes = problem_.sizes();
  const auto place =
      static_cast<std::size_t>(std::find(sizes.begin(), sizes.end(), base) - sizes.begin());
  std::int64_t work = 0;
  std::vector<PackedSlot> slots = builder_.build(items_.dearest(),
                                                 {.base = place,
                                                  .limit = limit,
                                                  .idle = SlotRecipe::Idle::spread,
                                                  .is_quick = care == PackCare::rough,
                                                  .most = most},
                                                 work);
  places_.settle(slots);
  return draft_of(slots, places_);
}

}  // namespace isochron
