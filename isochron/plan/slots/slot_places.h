#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// Ranks that groups have taken one by one, none wider than the one before.
struct TakenRanks {
  std::vector<char> is_taken = {};
  // Of the last size: no place with less of a fixed part is free, nor one with this much before
  // the rank `next`.
  std::int32_t size = 0;
  Nanoseconds fixed = 0;
  std::int32_t next = 0;
};

// Where the groups of a slot stand.
class SlotPlaces {
 public:
  explicit SlotPlaces(const Problem& problem);

  // Whether groups fit side by side as soon as their sizes add up.
  [[nodiscard]] bool is_simple() const { return is_simple_; }
  // Whether groups of this size fit wherever so many ranks idle.
  [[nodiscard]] bool fits_beside(std::int32_t size) const { return is_simple_ || size == 1; }
  // How many groups of this size fit beside those of a slot.
  [[nodiscard]] std::int32_t num_beside(const PackedSlot& slot, std::int32_t size) const;

  // First ranks for groups of these sizes, in their order, or nothing if they do not fit: widest
  // first, each at its first free place, inside a node if it can.
  [[nodiscard]] std::vector<std::int32_t> find(const std::vector<std::int32_t>& sizes) const;

  // No ranks taken.
  [[nodiscard]] TakenRanks all_free() const;
  // Takes a place for a group that is no wider than the one before, as find() does: its first rank,
  // or -1 if none is free.
  [[nodiscard]] std::int32_t take(std::int32_t size, TakenRanks& taken) const;
  // Places for groups, widest first; false if one has none.
  [[nodiscard]] bool take_all(const std::vector<std::int32_t>& sizes, TakenRanks& taken) const;
  // Ranks of groups that stand one after the other from the first on, or -1 if they cannot.
  [[nodiscard]] std::int32_t row_of(const std::vector<std::int32_t>& sizes) const;

  // Ranks of a block inside which groups are cheaper than across its border; 0 if there is none, or
  // if no group may cross it.
  [[nodiscard]] std::int32_t block() const { return block_; }

  // The groups of a slot on their ranks, and what the slowest takes there.
  [[nodiscard]] std::pair<std::vector<DraftGroup>, Nanoseconds> placed(
      const PackedSlot& slot) const;

  // Where groups of a size differ by their place, slots take what they do where they stand.
  void settle(std::vector<PackedSlot>& slots) const;

 private:
  [[nodiscard]] std::int32_t next_free(std::int32_t first, std::int32_t size,
                                       const TakenRanks& taken) const;
  [[nodiscard]] bool can_stand_at(std::int32_t first, std::int32_t size) const;
  [[nodiscard]] std::int32_t num_after(const std::vector<std::int32_t>& sizes, std::int32_t size,
                                       std::int32_t most) const;
  [[nodiscard]] std::vector<std::int32_t> places_in_row(
      const std::vector<std::int32_t>& sizes, const std::vector<std::size_t>& order) const;

  const Problem& problem_;
  bool is_simple_;
  bool is_alike_;  // groups of a size cost the same wherever they stand
  std::int32_t block_ = 0;
};

// What a slot has room for, group by group, so that none crosses a block that it fits: larger ones
// stand in a row from the first rank on, the others in the fullest block that still takes them.
class SlotRoom {
 public:
  explicit SlotRoom(const SlotPlaces& places, std::int32_t num_ranks);

  [[nodiscard]] std::int32_t num_free() const { return num_free_; }
  // Takes ranks for a group; false if it has no place.
  [[nodiscard]] bool take(std::int32_t size);

 private:
  [[nodiscard]] std::int32_t free_in(std::size_t block, std::int32_t row) const;
  [[nodiscard]] bool has_place(std::int32_t size);

  const SlotPlaces& places_;
  std::int32_t num_ranks_;
  std::int32_t num_free_;
  // Where places do not follow from sums:
  std::vector<std::int32_t> sizes_;   // of the groups, widest first
  std::vector<std::int32_t> failed_;  // sizes that have no place beside them
  bool is_in_line_ = true;            // each stands where those before it left room
  TakenRanks taken_;                  // by them, if so
  std::vector<std::int32_t> used_;    // ranks of each block, without those of the row
  std::int32_t row_ = 0;              // ranks of groups that are larger than a block
};

}  // namespace isochron
