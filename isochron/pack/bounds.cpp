// How many bins at least: volume, L2 (Martello and Toth, 1990), dual feasible functions (Fekete and
// Schepers, 2001).
//
// A function u on [0, 1] is dual feasible if any numbers that add up to at most 1 still do so after
// u. The sum of u(length / capacity) is then a bound. Two families, composed:
//   cut at e    numbers above 1 - e become 1, those below e become 0
//   round by k  x stays if (k+1)x is an integer, else it becomes floor((k+1)x) / k
// With sorted lengths the lengths that a cut keeps are an interval, so that sums of prefixes give
// all cuts in one pass for each k.

#include "isochron/pack/bounds.h"

#include <algorithm>
#include <vector>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::int64_t largest_k = 32;  // beyond it bounds no longer improved on real lengths

Int128 ceil_divide(Int128 value, Int128 divisor) { return (value + divisor - 1) / divisor; }

// The lengths that can share a micro-batch, ascending, and the number of the others.
struct Sorted {
  std::vector<Tokens> lengths;
  std::int64_t num_oversized = 0;
};

Sorted sorted_lengths(std::span<const Tokens> lengths, Tokens capacity) {
  require(capacity >= 1, "bound", "capacity is {}, must be at least 1", capacity);
  Sorted sorted;
  sorted.lengths.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 1, "bound", "lengths[{}] is {}, must be at least 1", i, lengths[i]);
    if (lengths[i] > capacity) {
      ++sorted.num_oversized;
    } else {
      sorted.lengths.push_back(lengths[i]);
    }
  }
  std::sort(sorted.lengths.begin(), sorted.lengths.end());
  return sorted;
}

Int128 volume(std::span<const Tokens> lengths, Tokens capacity) {
  Int128 total = 0;
  for (const Tokens length : lengths) total += length;
  return ceil_divide(total, capacity);
}

// Sums of value(length) over every prefix of the lengths.
template <class Value>
std::vector<Int128> prefix_sums(std::span<const Tokens> lengths, Value value) {
  std::vector<Int128> sums(lengths.size() + 1, 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) sums[i + 1] = sums[i] + value(lengths[i]);
  return sums;
}

// Calls visit(first, last) for every cut: lengths before `first` are too short to count, those from
// `last` on fill a micro-batch, for the thresholds 0 and each length up to half of the capacity.
template <class Visit>
void visit_cuts(std::span<const Tokens> lengths, Tokens capacity, Visit visit) {
  std::size_t last = lengths.size();
  visit(std::size_t{0}, last);
  for (std::size_t first = 0; first < lengths.size() && lengths[first] <= capacity / 2; ++first) {
    if (first > 0 && lengths[first] == lengths[first - 1]) continue;
    while (last > first && lengths[last - 1] > capacity - lengths[first]) --last;
    visit(first, last);
  }
}

Int128 l2(std::span<const Tokens> lengths, Tokens capacity) {
  const auto middle = static_cast<std::size_t>(
      std::upper_bound(lengths.begin(), lengths.end(), capacity / 2) - lengths.begin());
  const std::vector<Int128> sums = prefix_sums(lengths, [](Tokens length) { return length; });
  const auto num_large = static_cast<Int128>(lengths.size() - middle);
  Int128 most = 0;  // tokens, rounded up to micro-batches at the end
  visit_cuts(lengths, capacity, [&](std::size_t first, std::size_t last) {
    // What the large ones up to `last` leave beside them, for the small ones from `first` on.
    const Int128 room = static_cast<Int128>(last - middle) * capacity - (sums[last] - sums[middle]);
    const Int128 small = sums[middle] - sums[first];
    most = std::max(most, num_large * capacity + std::max<Int128>(small - room, 0));
  });
  return ceil_divide(most, capacity);
}

// In units of 1 / (k * capacity). `Number` holds (k + 1) * capacity.
template <class Number>
Int128 dual_feasible(std::span<const Tokens> lengths, Tokens capacity, std::int64_t k) {
  const std::vector<Int128> sums = prefix_sums(lengths, [&](Tokens length) {
    const Number scaled = static_cast<Number>(k + 1) * length;
    return static_cast<Int128>(scaled % capacity == 0 ? static_cast<Number>(k) * length
                                                      : scaled / capacity * capacity);
  });
  const Int128 one = static_cast<Int128>(k) * capacity;
  Int128 most = 0;
  visit_cuts(lengths, capacity, [&](std::size_t first, std::size_t last) {
    const auto full = static_cast<Int128>(lengths.size() - last);
    most = std::max(most, full * one + sums[last] - sums[first]);
  });
  return ceil_divide(most, one);
}

Int128 dual_feasible(std::span<const Tokens> lengths, Tokens capacity) {
  Int128 best = 0;
  for (std::int64_t k = 1; k <= largest_k; ++k) {
    // Divisions of 128 bits take several times as long, and capacities of 2^57 are rare.
    best = std::max(best, capacity < (Tokens{1} << 57)
                              ? dual_feasible<std::int64_t>(lengths, capacity, k)
                              : dual_feasible<Int128>(lengths, capacity, k));
  }
  return best;
}

}  // namespace

std::int32_t volume_bound(std::span<const Tokens> lengths, Tokens capacity) {
  const Sorted sorted = sorted_lengths(lengths, capacity);
  return static_cast<std::int32_t>(sorted.num_oversized + volume(sorted.lengths, capacity));
}

std::int32_t l2_bound(std::span<const Tokens> lengths, Tokens capacity) {
  const Sorted sorted = sorted_lengths(lengths, capacity);
  return static_cast<std::int32_t>(sorted.num_oversized + l2(sorted.lengths, capacity));
}

std::int32_t dual_feasible_bound(std::span<const Tokens> lengths, Tokens capacity) {
  const Sorted sorted = sorted_lengths(lengths, capacity);
  return static_cast<std::int32_t>(sorted.num_oversized + dual_feasible(sorted.lengths, capacity));
}

std::int32_t count_bound(std::span<const Tokens> lengths, Tokens capacity) {
  const Sorted sorted = sorted_lengths(lengths, capacity);
  const Int128 best = std::max({volume(sorted.lengths, capacity), l2(sorted.lengths, capacity),
                                dual_feasible(sorted.lengths, capacity)});
  return static_cast<std::int32_t>(sorted.num_oversized + best);
}

}  // namespace isochron
