#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/slot_items.h"

namespace isochron {

// Where the groups of a slot stand.
class SlotPlaces {
 public:
  explicit SlotPlaces(const Problem& problem);

  // Whether groups fit side by side as soon as their sizes add up.
  [[nodiscard]] bool is_simple() const { return is_simple_; }

  // First ranks for groups of these sizes, in their order, or nothing if they do not fit: widest
  // first, each at its first free place, inside a node if it can.
  [[nodiscard]] std::vector<std::int32_t> find(const std::vector<std::int32_t>& sizes) const;

  // Whether one more group has a place beside those of a slot.
  [[nodiscard]] bool holds(const std::vector<PackedGroup>& groups, const PackedGroup& more) const;

  // The groups of a slot on their ranks, and what the slowest takes there.
  [[nodiscard]] std::pair<std::vector<DraftGroup>, Nanoseconds> placed(
      const PackedSlot& slot) const;

  // Where groups of a size differ by their place, slots take what they do where they stand.
  void settle(std::vector<PackedSlot>& slots) const;

 private:
  [[nodiscard]] std::vector<std::int32_t> places_in_row(
      const std::vector<std::int32_t>& sizes, const std::vector<std::size_t>& order) const;

  const Problem& problem_;
  bool is_simple_;
  bool is_alike_;  // groups of a size cost the same wherever they stand
};

}  // namespace isochron
