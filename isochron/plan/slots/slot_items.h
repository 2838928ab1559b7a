#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "isochron/plan/problem.h"

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

// What items cost on groups of every size, each at the cheapest place of its size. Every item is a
// bundle and fits some size. A place is that of a size in sizes().
class SlotItems {
 public:
  // Of an item on a group of some size, at the cheapest place of that size.
  struct Known {
    Nanoseconds cost = -1;  // -1: not known
    Tokens tokens = 0;      // padded
    Nanoseconds needs = 0;  // its cost, or what its tokens cost at least if that is less
  };

  // All items on groups of one size, by their position in dearest().
  class Row {
   public:
    const Known& operator[](std::int32_t position) const {
      Known& known = known_[position];
      if (known.cost < 0) known = items_.find(place_, position);
      return known;
    }

   private:
    friend class SlotItems;
    Row(const SlotItems& items, std::size_t place, Known* known)
        : items_(items), place_(place), known_(known) {}

    const SlotItems& items_;
    std::size_t place_;
    Known* known_;
  };

  // With a block, no group smaller than it has a size that does not divide it: what such groups
  // leave of a block is of little use to others.
  explicit SlotItems(const Problem& problem, std::int32_t block = 0);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] std::size_t num_places() const { return prices_.size(); }

  // All items, dearest first, and the place of each in that order.
  [[nodiscard]] const std::vector<ItemId>& dearest() const { return dearest_; }
  [[nodiscard]] std::int32_t position(ItemId item) const {
    return position_[static_cast<std::size_t>(item)];
  }
  // Sums over the items, each on the smallest group that holds it.
  [[nodiscard]] double total_area() const { return total_area_; }
  [[nodiscard]] double total_tokens() const { return total_tokens_; }
  // Of one item there.
  [[nodiscard]] double least_area(ItemId item) const {
    return least_area_[static_cast<std::size_t>(item)];
  }
  // The least cost of a token.
  [[nodiscard]] double lightest() const { return lightest_; }

  [[nodiscard]] Row row(std::size_t place) const {
    std::vector<Known>& known = known_[place];
    if (known.size() < dearest_.size()) known.resize(dearest_.size());
    return {*this, place, known.data()};
  }
  // Asked so often that it is kept close by. Of wide groups the dearest alone are asked for.
  [[nodiscard]] const Known& known(std::size_t place, ItemId item) const {
    const auto at = static_cast<std::size_t>(position(item));
    std::vector<Known>& row = known_[place];
    if (row.size() <= at) row.resize(std::min(dearest_.size(), std::max(2 * at + 1, min_row)));
    if (row[at].cost < 0) row[at] = find(place, position(item));
    return row[at];
  }
  [[nodiscard]] Nanoseconds cost(std::size_t place, ItemId item) const {
    return known(place, item).cost;
  }
  // Padded tokens.
  [[nodiscard]] Tokens tokens(std::size_t place, ItemId item) const {
    return known(place, item).tokens;
  }
  [[nodiscard]] Nanoseconds fixed(std::size_t place) const {
    return problem_.price(prices_[place]).fixed;
  }
  // Whether groups of this place are used, and hold the item.
  [[nodiscard]] bool fits(std::size_t place, ItemId item) const;
  [[nodiscard]] std::size_t smallest(ItemId item) const {
    return static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]);
  }
  // Place of the smallest size from `base` up that holds the item; num_places() if none does.
  [[nodiscard]] std::size_t smallest_from(std::size_t base, ItemId item) const;
  // Place of the smallest size from `base` up on which the item ends within the limit, or else of
  // the fastest.
  [[nodiscard]] std::size_t smallest_within(std::size_t base, Nanoseconds limit, ItemId item) const;
  // Whether some size from `base` up holds every item.
  [[nodiscard]] bool holds_all(std::size_t base) const;
  // What traffic makes of the area of an item, on a larger group than it needs.
  [[nodiscard]] double overhead(std::size_t place, ItemId item) const;

  [[nodiscard]] PackedGroup group_at(std::size_t place) const;
  void put(PackedGroup& group, ItemId item) const;

 private:
  struct Minimum {
    Nanoseconds time = 0;
    std::size_t place = 0;
  };
  // Places from `first` up to `next` on which an item is faster than on all of them before.
  struct Minima {
    std::size_t first = std::numeric_limits<std::size_t>::max();
    std::size_t next = 0;
    std::vector<Minimum> falling = {};
  };

  [[nodiscard]] Known find(std::size_t place, std::int32_t position) const;

  const Problem& problem_;
  std::int32_t block_;           // 0: none
  std::vector<PriceId> prices_;  // of each size, at its cheapest place
  static constexpr std::size_t min_row = 64;
  mutable std::vector<std::vector<Known>> known_;  // by place and position, as far as asked for
  mutable std::vector<Minima> minima_;             // by position, as far as asked for
  std::vector<std::int32_t> smallest_;  // place in sizes() of the smallest that holds an item
  std::vector<double> least_area_;      // of each item, on that size
  std::vector<ItemId> dearest_;
  std::vector<std::int32_t> position_;  // of each item in dearest_
  double total_area_ = 0;
  double total_tokens_ = 0;
  double lightest_ = 0;
};

}  // namespace isochron
