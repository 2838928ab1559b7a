#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/slot_builder.h"
#include "isochron/plan/slot_items.h"
#include "isochron/plan/slot_places.h"

namespace isochron {

// How slots are made that leave little time unused.
struct TightRecipe {
  std::size_t base = 0;          // place of the size of cells
  std::int32_t num_lengths = 2;  // tried for each slot: its longest item on so many sizes
  std::int32_t grain = 9;        // time below 2^-grain of a slot is not worth a search for pairs
  bool is_quick = false;         // a rough answer for what is spread in the end
};

// Makes slots one by one. Refers to what it is made of.
class TightSlots {
 public:
  TightSlots(const SlotItems& items, const SlotPlaces& places, const SlotBuilder& builder);

  // Slots for items, which stand dearest first. What it takes is taken off `work`.
  [[nodiscard]] std::vector<PackedSlot> build(const std::vector<ItemId>& items,
                                              const TightRecipe& recipe, std::int64_t& work) const;

 private:
  class Pool;
  struct Trial;

  Trial try_slot(const std::vector<ItemId>& left, const TightRecipe& recipe, ItemId longest,
                 std::size_t place, std::int64_t& work) const;
  void fill(PackedGroup& group, Nanoseconds length, std::int32_t grain, Pool& pool) const;

  const SlotItems& items_;
  const Problem& problem_;
  const SlotPlaces& places_;
  const SlotBuilder& builder_;
};

}  // namespace isochron
