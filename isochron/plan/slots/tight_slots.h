#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"

namespace isochron {

// How slots are made that leave little time unused.
struct TightRecipe {
  std::size_t base = 0;          // place of the size of cells
  std::int32_t num_lengths = 2;  // tried for each slot: its longest item on so many sizes
  std::int32_t grain = 9;        // time below 2^-grain of a slot is not worth a search for pairs
  bool is_quick = false;         // a rough answer for what is spread in the end
  // Gives up, without slots, where they take longer.
  Nanoseconds most = std::numeric_limits<Nanoseconds>::max();
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
  struct State;
  struct Trial;
  struct Entry {  // an item on a group of some size
    Nanoseconds time = 0;
    std::size_t place = 0;
    ItemId item = 0;
  };

  State begin(const std::vector<ItemId>& items, std::size_t base) const;
  bool needs_more(std::size_t base, ItemId item) const;
  void remove(const PackedSlot& slot, std::size_t base, State& state) const;
  Trial try_slot(const State& state, const TightRecipe& recipe, const Entry& first,
                 std::int64_t& work) const;
  std::vector<Entry> widened(const State& state, std::size_t base, Nanoseconds length,
                             std::size_t end) const;
  void fill(PackedGroup& group, Nanoseconds length, std::int32_t grain, Pool& pool) const;

  const SlotItems& items_;
  const Problem& problem_;
  const SlotPlaces& places_;
  const SlotBuilder& builder_;
};

}  // namespace isochron
