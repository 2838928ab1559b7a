#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slot_places.h"

namespace isochron {

// A micro-batch without its place.
struct PackedGroup {
  std::int32_t place = 0;  // of its size in sizes()
  std::int32_t size = 1;
  Nanoseconds time = 0;  // with the fixed part
  Tokens tokens = 0;
  std::int32_t num_sequences = 0;
  std::vector<ItemId> items = {};
};

struct PackedSlot {
  std::vector<PackedGroup> groups = {};
  Nanoseconds time = 0;
  Nanoseconds room = 0;  // that groups may fill
};

// The sum over slots.
[[nodiscard]] Nanoseconds total_time(const std::vector<PackedSlot>& slots);

// How slots are built.
struct SlotRecipe {
  // What to do with ranks beside the wide groups of a slot.
  enum class Idle {
    filled,  // item by item, as long as the slot does not get longer
    spread,  // evenly, together with further slots
  };
  // How what needs wide groups comes into slots.
  enum class Wide {
    at_once,  // packed first, then sorted into slots
    in_turn,  // slot by slot: the longest that are left, then what fills the time they leave
  };

  std::size_t base = 0;   // place of the size of cells: items that fit it need no wide group
  Nanoseconds limit = 0;  // that groups keep where they can
  Idle idle = Idle::filled;
  Wide wide = Wide::at_once;
  bool is_quick = false;  // a rough answer, to compare limits by
  bool is_last = false;   // spreads what is left as it is
};

// Makes slots of items by a recipe. Every item is a bundle and fits some size.
class SlotBuilder {
 public:
  explicit SlotBuilder(const Problem& problem);

  // All items, dearest first, and the place of each in that order.
  [[nodiscard]] const std::vector<ItemId>& dearest() const { return dearest_; }
  [[nodiscard]] std::int32_t position(ItemId item) const {
    return position_[static_cast<std::size_t>(item)];
  }
  // Sums over the items, each on the smallest group that holds it.
  [[nodiscard]] double total_area() const { return total_area_; }
  [[nodiscard]] double total_tokens() const { return total_tokens_; }

  // By the place of a size in sizes(), at the cheapest place of that size.
  [[nodiscard]] Nanoseconds cost(std::size_t place, ItemId item) const {
    return problem_.cost(prices_[place], item);
  }
  [[nodiscard]] Nanoseconds fixed(std::size_t place) const {
    return problem_.price(prices_[place]).fixed;
  }
  [[nodiscard]] std::size_t smallest(ItemId item) const {
    return static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]);
  }
  // Whether some size from `base` up holds every item.
  [[nodiscard]] bool holds_all(std::size_t base) const;

  // Slots for items, which stand dearest first. What it takes is taken off `work`.
  [[nodiscard]] std::vector<PackedSlot> build(const std::vector<ItemId>& items,
                                              const SlotRecipe& recipe, std::int64_t& work) const;

  // Where groups of a size differ by their place, a slot takes what it does where they stand.
  void settle(std::vector<PackedSlot>& slots) const;

  // The groups of a slot on their ranks, and what the slowest takes there.
  [[nodiscard]] std::pair<std::vector<DraftGroup>, Nanoseconds> placed(
      const PackedSlot& slot) const;

 private:
  class OpenGroups;

  std::size_t smallest_from(std::size_t base, ItemId item) const;
  void put(PackedGroup& group, ItemId item) const;
  PackedGroup group_at(std::size_t place) const;
  double overhead(std::size_t place, ItemId item) const;
  std::size_t place_within(const SlotRecipe& recipe, ItemId item) const;
  bool can_place(const std::vector<PackedGroup>& groups, const PackedGroup& more) const;
  std::vector<PackedGroup> pack(const std::vector<ItemId>& items, const SlotRecipe& recipe,
                                std::int64_t& work) const;
  std::vector<PackedSlot> arrange(std::vector<PackedGroup> groups) const;
  std::vector<PackedSlot> build_in_turn(const std::vector<ItemId>& items, const SlotRecipe& recipe,
                                        std::int64_t& work) const;
  Nanoseconds even_share(const std::vector<ItemId>& items, std::size_t base) const;
  std::vector<PackedSlot> with_rest_apart(const std::vector<PackedSlot>& slots,
                                          const std::vector<ItemId>& items,
                                          const SlotRecipe& recipe, std::int64_t& work) const;
  std::vector<ItemId> fill(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
                           const SlotRecipe& recipe, std::int64_t& work) const;
  void spread(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
              const SlotRecipe& recipe, std::int64_t& work) const;

  const Problem& problem_;
  SlotPlaces places_;
  std::vector<PriceId> prices_;         // of each size, at its cheapest place
  std::vector<std::int32_t> smallest_;  // place in sizes() of the smallest that holds an item
  std::vector<double> least_area_;      // of each item, on that size
  std::vector<ItemId> dearest_;
  std::vector<std::int32_t> position_;  // of each item in dearest_
  double total_area_ = 0;
  double total_tokens_ = 0;
  double lightest_ = 0;   // least cost of a token
  bool is_alike_ = true;  // groups of a size cost the same wherever they stand
};

}  // namespace isochron
