#include "isochron/core/radix_sort.h"

#include <array>
#include <bit>

namespace isochron {

namespace {

// Stable counting sorts by one digit of `key` after the other, least significant first, for the
// digits that differ between items.
template <int Bits, class Item, class Key>
void sort_by_digits(std::vector<Item>& items, std::uint64_t differing, Key key) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << Bits) - 1;
  std::vector<Item> sorted(items.size());
  std::array<std::uint32_t, mask + 2> start;
  for (int shift = 0; shift < 64; shift += Bits) {
    if (((differing >> shift) & mask) == 0) continue;
    start.fill(0);
    for (const Item& item : items) ++start[((key(item) >> shift) & mask) + 1];
    for (std::size_t digit = 1; digit <= mask; ++digit) start[digit] += start[digit - 1];
    for (const Item& item : items) sorted[start[(key(item) >> shift) & mask]++] = item;
    items.swap(sorted);
  }
}

template <class Item, class Key>
void sort_by(std::vector<Item>& items, std::uint64_t differing, Key key) {
  if (items.size() < 1024) {  // fewer passes are not worth longer tables
    sort_by_digits<8>(items, differing, key);
  } else {
    sort_by_digits<11>(items, differing, key);
  }
}

}  // namespace

std::vector<std::int32_t> ascending_positions(std::vector<std::uint64_t> keys) {
  std::vector<std::int32_t> positions(keys.size());
  std::uint64_t differing = 0;
  for (const std::uint64_t key : keys) differing |= key ^ keys[0];
  const auto key_bits = static_cast<int>(std::bit_width(differing));
  const auto position_bits = static_cast<int>(std::bit_width(keys.size()));
  if (key_bits + position_bits <= 64) {
    // Key and position in one word: half of the memory to move.
    const std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = (keys[i] << position_bits) | i;
    sort_by(keys, differing, [&](std::uint64_t word) { return word >> position_bits; });
    for (std::size_t i = 0; i < keys.size(); ++i) {
      positions[i] = static_cast<std::int32_t>(keys[i] & position_mask);
    }
    return positions;
  }
  struct Keyed {
    std::uint64_t key;
    std::int32_t position;
  };
  std::vector<Keyed> keyed(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keyed[i] = {keys[i], static_cast<std::int32_t>(i)};
  sort_by(keyed, differing, [](const Keyed& item) { return item.key; });
  for (std::size_t i = 0; i < keyed.size(); ++i) positions[i] = keyed[i].position;
  return positions;
}

}  // namespace isochron
