#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/slots/slot_builder.h"
#include "isochron/plan/slots/slot_items.h"
#include "isochron/plan/slots/slot_places.h"
#include "isochron/plan/slots/slot_pool.h"

namespace isochron {

// How slots are made that leave little time unused.
struct TightRecipe {
  std::size_t base = 0;          // place of the size of cells
  std::int32_t num_lengths = 2;  // tried for each slot: its longest item on so many sizes
  std::int32_t grain = 9;        // time below 2^-grain of a slot is not worth a search for pairs
  bool looks_ahead = false;      // tries more lengths, and what the slots after each would be
  bool is_quick = false;         // a rough answer for what is spread in the end
  // Gives up, without slots, where they take longer.
  Nanoseconds most = std::numeric_limits<Nanoseconds>::max();
};

// Slots, and what is to be spread over further ones, dearest first.
struct TightStart {
  std::vector<PackedSlot> slots = {};
  std::vector<ItemId> rest = {};
};

// Makes slots one by one. Refers to what it is made of.
class TightSlots {
 private:
  struct Entry {  // an item on a group of some size
    Nanoseconds time = 0;
    std::size_t place = 0;
    std::int32_t position = 0;
  };

 public:
  struct State {  // what is left to do
    SlotPool pool;
    std::vector<Entry> longest = {};  // the same items, longest first
    std::int32_t num_wide = 0;        // items that need more than a cell, or are alone in it
    std::int32_t num_wider = 0;       // those that no cell holds
    double area = 0;                  // of all of them
  };

  TightSlots(const SlotItems& items, const SlotPlaces& places, const SlotBuilder& builder);

  // Slots for items, which stand dearest first. What it takes is taken off `work`.
  [[nodiscard]] std::vector<PackedSlot> build(const std::vector<ItemId>& items,
                                              const TightRecipe& recipe, std::int64_t& work) const;

  // The same in two steps, so that the second may be done twice. Nothing if it is given up.
  [[nodiscard]] std::optional<TightStart> start(const std::vector<ItemId>& items,
                                                const TightRecipe& recipe,
                                                std::int64_t& work) const;
  [[nodiscard]] std::vector<PackedSlot> finished(const TightStart& start, const TightRecipe& recipe,
                                                 std::int64_t& work) const;

  // All of these items, which stand dearest first, in cells of the size at `base`.
  [[nodiscard]] State begin(const std::vector<ItemId>& items, std::size_t base) const;

  // Slots of these lengths, none longer than the one before it, each with the longest item that is
  // left even if that takes longer. They end when nothing is left, or more than finds a place.
  [[nodiscard]] TightStart of_lengths(State state, std::span<const Nanoseconds> lengths,
                                      const TightRecipe& recipe, std::int64_t& work) const;

 private:
  struct Trial {
    PackedSlot slot = {};
    double useful = 0;  // areas of its items
  };

  bool needs_more(std::size_t base, ItemId item) const;
  void remove(const Trial& trial, std::size_t base, State& state) const;
  Trial next_slot(const State& state, const TightRecipe& recipe, std::int64_t& work) const;
  Trial fullest_slot(const State& state, const TightRecipe& recipe, std::int64_t& work) const;
  Trial foreseen_slot(const State& state, const TightRecipe& recipe, std::int64_t& work) const;
  double waste_ahead(State state, const TightRecipe& recipe, double most, std::int64_t& work) const;
  double most_area(const State& state, std::span<const Nanoseconds> lengths) const;
  double share_of(const Trial& trial) const;
  double waste_of(const Trial& trial) const;
  std::vector<Nanoseconds> own_lengths(const State& state, const TightRecipe& recipe) const;
  std::vector<Nanoseconds> all_lengths(const State& state, const TightRecipe& recipe) const;
  Trial try_slot(const State& state, const TightRecipe& recipe, Nanoseconds length,
                 std::int64_t& work) const;
  std::vector<Entry> widened(const State& state, std::size_t base, Nanoseconds length,
                             std::size_t end) const;
  std::int32_t fill(PackedGroup& group, Nanoseconds length, std::int32_t grain, std::int32_t first,
                    SlotPool& pool, std::vector<std::int32_t>& taken) const;

  const SlotItems& items_;
  const Problem& problem_;
  const SlotPlaces& places_;
  const SlotBuilder& builder_;
};

}  // namespace isochron
