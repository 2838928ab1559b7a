#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"

namespace isochron {

// How slots are built.
struct SlotRecipe {
  // What to do with ranks beside the wide groups of a slot.
  enum class Idle {
    filled,  // item by item, as long as the slot does not get longer
    spread,  // evenly, together with further slots
  };

  std::size_t base = 0;   // place of the size of cells: items that fit it need no wide group
  Nanoseconds limit = 0;  // that groups keep where they can
  Idle idle = Idle::filled;
  bool is_quick = false;  // a rough answer, to compare limits by
  bool is_last = false;   // spreads what is left as it is
  // Gives up, without slots, where they take longer.
  Nanoseconds most = std::numeric_limits<Nanoseconds>::max();
};

// Makes slots of items by a recipe. Refers to what it is made of.
class SlotBuilder {
 public:
  SlotBuilder(const SlotItems& items, const SlotPlaces& places);

  // Slots for items, which stand dearest first. What it takes is taken off `work`.
  [[nodiscard]] std::vector<PackedSlot> build(const std::vector<ItemId>& items,
                                              const SlotRecipe& recipe, std::int64_t& work) const;

  // What every cell gets of items, if they fill as many slots as their tokens need.
  [[nodiscard]] Nanoseconds even_share(const std::vector<ItemId>& items, std::size_t base) const;

 private:
  double least_time(const std::vector<PackedSlot>& slots, const std::vector<ItemId>& items) const;
  std::vector<PackedGroup> pack(const std::vector<ItemId>& items, const SlotRecipe& recipe,
                                std::int64_t& work) const;
  std::vector<PackedSlot> arrange(std::vector<PackedGroup> groups) const;
  std::vector<PackedSlot> with_rest_apart(const std::vector<PackedSlot>& slots,
                                          const std::vector<ItemId>& items,
                                          const SlotRecipe& recipe, std::int64_t& work) const;
  std::vector<ItemId> fill(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
                           const SlotRecipe& recipe, std::int64_t& work) const;
  void spread(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
              const SlotRecipe& recipe, std::int64_t& work) const;

  const SlotItems& items_;
  const Problem& problem_;
  const SlotPlaces& places_;
};

}  // namespace isochron
