#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// Items that are left, by their position in dearest(); some are taken for a while. Cheap to copy.
class SlotPool {
 public:
  static constexpr std::int32_t none = -1;

  SlotPool(const SlotItems& items, const std::vector<ItemId>& left);

  [[nodiscard]] ItemId item(std::int32_t position) const {
    return items_->dearest()[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] bool has(std::int32_t position) const {
    return (words_[static_cast<std::size_t>(position) / 64] >> (position % 64) & 1) != 0;
  }
  void take(std::int32_t position) {
    words_[static_cast<std::size_t>(position) / 64] &= ~(std::uint64_t{1} << (position % 64));
  }
  void give(std::int32_t position) {
    words_[static_cast<std::size_t>(position) / 64] |= std::uint64_t{1} << (position % 64);
  }

  // All that are not taken, dearest first.
  [[nodiscard]] std::vector<ItemId> left() const;

  // The first one from `position` on that is not taken.
  [[nodiscard]] std::int32_t next(std::int32_t position) const;

  // The first one from `position` on that a group of this place with so much room takes; where
  // costs there, or tokens, do not have the order of costs on the smallest group, one of the first.
  [[nodiscard]] std::int32_t first_within(std::size_t place, std::int32_t position,
                                          Nanoseconds time, Tokens tokens,
                                          std::int32_t seats) const;

 private:
  [[nodiscard]] std::int32_t last() const;  // if there is any

  const SlotItems* items_;
  std::vector<std::uint64_t> words_;
};

}  // namespace isochron
