#include "isochron/plan/slots/slot_pool.h"

#include <bit>

namespace isochron {

SlotPool::SlotPool(const SlotItems& items, const std::vector<ItemId>& left)
    : items_(&items), words_(items.dearest().size() / 64 + 1, 0) {
  for (const ItemId item : left) give(items.position(item));
}

std::vector<ItemId> SlotPool::left() const {
  std::vector<ItemId> result;
  for (std::int32_t i = next(0); i != none; i = next(i + 1)) result.push_back(item(i));
  return result;
}

std::int32_t SlotPool::next(std::int32_t position) const {
  auto word = static_cast<std::size_t>(position) / 64;
  if (word >= words_.size()) return none;
  std::uint64_t bits = words_[word] & ~std::uint64_t{0} << (position % 64);
  while (bits == 0) {
    if (++word == words_.size()) return none;
    bits = words_[word];
  }
  return static_cast<std::int32_t>(word * 64) + std::countr_zero(bits);
}

std::int32_t SlotPool::last() const {
  std::size_t word = words_.size() - 1;
  while (words_[word] == 0) --word;
  return static_cast<std::int32_t>(word * 64) + 63 - std::countl_zero(words_[word]);
}

std::int32_t SlotPool::first_within(std::size_t place, std::int32_t position, Nanoseconds time,
                                    Tokens tokens, std::int32_t seats) const {
  const Problem& problem = items_->problem();
  const SlotItems::Row row = items_->row(place);
  const auto fits = [&](std::int32_t i) {
    const SlotItems::Known& known = row[i];
    return known.cost <= time && known.tokens <= tokens;
  };
  // Most of the dearest are taken, and often the first that is left fits, or not even the last.
  std::int32_t low = next(position);
  if (low == none || !fits(last())) return none;
  std::int32_t high = fits(low) ? low : static_cast<std::int32_t>(items_->dearest().size());
  while (low < high) {
    const std::int32_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  constexpr int max_tries = 4;
  for (int tries = 0; tries < max_tries; ++tries) {
    low = next(low);
    if (low == none) return none;
    if (fits(low) && !problem.is_alone(item(low)) && problem.num_sequences(item(low)) <= seats) {
      return low;
    }
    ++low;
  }
  return none;
}

}  // namespace isochron
