#include "isochron/core/radix_sort.h"

#include <array>

namespace isochron {

namespace {

struct Keyed {
  std::uint64_t key;
  std::int32_t position;
};

// Stable counting sorts by one digit after the other, least significant first.
template <int Bits>
void sort_by_digits(std::vector<Keyed>& keyed, std::uint64_t differing) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << Bits) - 1;
  std::vector<Keyed> sorted(keyed.size());
  std::array<std::uint32_t, mask + 2> start;
  for (int shift = 0; shift < 64; shift += Bits) {
    if (((differing >> shift) & mask) == 0) continue;
    start.fill(0);
    for (const Keyed& k : keyed) ++start[((k.key >> shift) & mask) + 1];
    for (std::size_t digit = 1; digit <= mask; ++digit) start[digit] += start[digit - 1];
    for (const Keyed& k : keyed) sorted[start[(k.key >> shift) & mask]++] = k;
    keyed.swap(sorted);
  }
}

}  // namespace

std::vector<std::int32_t> ascending_positions(std::span<const std::uint64_t> keys) {
  std::vector<Keyed> keyed(keys.size());
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keyed[i] = {keys[i], static_cast<std::int32_t>(i)};
    differing |= keys[i] ^ keys[0];
  }
  if (keys.size() < 1024) {  // fewer passes are not worth longer tables
    sort_by_digits<8>(keyed, differing);
  } else {
    sort_by_digits<11>(keyed, differing);
  }
  std::vector<std::int32_t> positions(keys.size());
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = keyed[i].position;
  return positions;
}

}  // namespace isochron
