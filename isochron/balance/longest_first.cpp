// Longest processing time first (Graham, 1969): at most 4/3 of the optimum, without limits.
//
// A bin that has no room for a unit sits out that unit, since a shorter one may fit; a bin that is
// full never returns.

#include <algorithm>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/balance/tournament.h"

namespace isochron {

std::optional<BinOf> longest_first(const Units& units, const DearestFirst& order,
                                   std::int32_t num_bins, const Limits& limits,
                                   Nanoseconds offset) {
  const auto k = static_cast<std::size_t>(num_bins);
  const std::size_t n = units.count();
  // Units beyond min_units in every bin; once they are used up, bins with min_units are full.
  std::int64_t extra =
      static_cast<std::int64_t>(n) - static_cast<std::int64_t>(limits.min_units) * num_bins;
  if (extra < 0) return std::nullopt;

  // Where most bins are full, looking for room among them is not what this is good at.
  std::int64_t patience = 1'000'000;
  const bool has_volume = limits.has_volume();
  Tournament cheapest(std::vector<Nanoseconds>(k, 0));
  std::vector<Tokens> tokens(k, 0);
  std::vector<std::int64_t> sizes(k, 0);
  std::vector<std::int32_t> counts(k, 0);
  BinOf bin_of(n);
  std::vector<std::pair<std::int32_t, Nanoseconds>> aside;
  // What a bin needs room for to take any unit that is left.
  std::vector<Tokens> fewest(has_volume ? n : 0);
  for (std::size_t i = fewest.size(); i-- > 0;) {
    const Tokens own = units.tokens_of(static_cast<std::size_t>(order.units[i]));
    fewest[i] = i + 1 < n ? std::min(own, fewest[i + 1]) : own;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto unit = static_cast<std::size_t>(order.units[i]);
    while (true) {
      if (cheapest.is_empty()) return std::nullopt;
      const std::int32_t winner = cheapest.bin();
      const auto bin = static_cast<std::size_t>(winner);
      const bool is_filled = counts[bin] >= limits.min_units;
      if (counts[bin] >= limits.max_units || (is_filled && extra == 0)) {
        cheapest.set(winner, Tournament::out);
        continue;
      }
      if (has_volume) {
        if (tokens[bin] + units.tokens_of(unit) > limits.capacity ||
            sizes[bin] + units.size_of(unit) > limits.max_size) {
          if (--patience < 0) return std::nullopt;
          const bool is_full =
              tokens[bin] + fewest[i] > limits.capacity || sizes[bin] >= limits.max_size;
          if (!is_full) aside.emplace_back(winner, cheapest.key());
          cheapest.set(winner, Tournament::out);
          continue;
        }
        tokens[bin] += units.tokens_of(unit);
        sizes[bin] += units.size_of(unit);
      }
      extra -= is_filled ? 1 : 0;
      bin_of[unit] = winner;
      counts[bin] += 1;
      cheapest.set(winner, cheapest.key() + order.costs[i] - offset);
      break;
    }
    for (const auto& [bin, key] : aside) cheapest.set(bin, key);
    aside.clear();
  }
  return bin_of;
}

}  // namespace isochron
