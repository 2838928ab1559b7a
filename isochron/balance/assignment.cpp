#include "isochron/balance/assignment.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "isochron/core/int128.h"
#include "isochron/core/radix_sort.h"

namespace isochron {

DearestFirst dearest_first(std::span<const Nanoseconds> costs) {
  if (std::is_sorted(costs.begin(), costs.end(), std::greater<>())) {
    DearestFirst same{std::vector<std::int32_t>(costs.size()), {costs.begin(), costs.end()}};
    std::iota(same.units.begin(), same.units.end(), 0);
    return same;
  }
  std::vector<std::uint64_t> keys(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    keys[i] = static_cast<std::uint64_t>(max_total_cost - costs[i]);
  }
  DearestFirst order{ascending_positions(std::move(keys)), {}};
  order.costs.resize(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    order.costs[i] = costs[static_cast<std::size_t>(order.units[i])];
  }
  return order;
}

Nanoseconds largest_cost(const Units& units, std::int32_t num_bins, const BinOf& bin_of) {
  std::vector<Nanoseconds> costs(static_cast<std::size_t>(num_bins), 0);
  for (std::size_t unit = 0; unit < bin_of.size(); ++unit) {
    costs[static_cast<std::size_t>(bin_of[unit])] += units.costs[unit];
  }
  return *std::max_element(costs.begin(), costs.end());
}

bool are_kept(const Limits& limits, const Units& units, std::int32_t num_bins,
              const BinOf& bin_of) {
  struct Content {
    Tokens tokens = 0;
    std::int64_t size = 0;
    std::int32_t count = 0;
  };
  std::vector<Content> bins(static_cast<std::size_t>(num_bins));
  for (std::size_t unit = 0; unit < bin_of.size(); ++unit) {
    Content& bin = bins[static_cast<std::size_t>(bin_of[unit])];
    bin.tokens += units.tokens_of(unit);
    bin.size += units.size_of(unit);
    ++bin.count;
  }
  return std::all_of(bins.begin(), bins.end(), [&](const Content& bin) {
    return bin.tokens <= limits.capacity && bin.size <= limits.max_size &&
           bin.count >= limits.min_units && bin.count <= limits.max_units;
  });
}

Nanoseconds cost_bound(const DearestFirst& order, std::int32_t num_bins, std::int32_t min_units) {
  const std::size_t n = order.costs.size();
  if (n == 0) return 0;
  const auto k = static_cast<std::size_t>(num_bins);
  const Nanoseconds total = std::accumulate(order.costs.begin(), order.costs.end(), Nanoseconds{0});
  Nanoseconds bound = total / num_bins + (total % num_bins != 0 ? 1 : 0);

  const auto needed = std::min(static_cast<std::size_t>(min_units), n);
  const auto at = [&](std::size_t i) {
    return order.costs.begin() + static_cast<std::ptrdiff_t>(i);
  };
  // Beyond 64 the mean is as good, and the sums would be quadratic in n / k.
  for (std::size_t j = 0; j * k < n && j < 64; ++j) {
    // Of the j*k+1 dearest some bin holds j+1; what it lacks is at best the cheapest of all.
    Nanoseconds shared = std::accumulate(at(j * k - j), at(j * k + 1), Nanoseconds{0});
    if (j + 1 < needed) shared += std::accumulate(at(n - (needed - j - 1)), at(n), Nanoseconds{0});
    bound = std::max(bound, shared);
  }
  return bound;
}

Nanoseconds crowding_bound(const Units& units, const DearestFirst& order, std::int32_t num_bins,
                           Tokens capacity) {
  constexpr std::int32_t most_dear = 16;
  if (capacity == Limits::unlimited) return 0;
  const Tokens total = std::accumulate(units.tokens.begin(), units.tokens.end(), Tokens{0});
  const auto num_dear = std::min({most_dear, num_bins, static_cast<std::int32_t>(units.count())});
  if (total <= static_cast<Int128>(num_bins - num_dear) * capacity) return 0;

  // Cheapest tokens first. In integers: costs up to 2^62 times tokens up to 2^62 fit 128 bits.
  std::vector<std::int32_t> by_density(order.units.rbegin(), order.units.rend());
  std::stable_sort(by_density.begin(), by_density.end(), [&](std::int32_t a, std::int32_t b) {
    const auto i = static_cast<std::size_t>(a);
    const auto j = static_cast<std::size_t>(b);
    return static_cast<Int128>(units.costs[i]) * units.tokens[j] <
           static_cast<Int128>(units.costs[j]) * units.tokens[i];
  });
  std::vector<bool> is_dear(units.count(), false);
  Int128 cost_of_dear = 0;
  Tokens tokens_of_dear = 0;
  Nanoseconds bound = 0;
  for (std::int32_t j = 1; j <= num_dear; ++j) {
    const auto place = static_cast<std::size_t>(j) - 1;
    const auto dear = static_cast<std::size_t>(order.units[place]);
    is_dear[dear] = true;
    cost_of_dear += units.costs[dear];
    tokens_of_dear += units.tokens[dear];
    Int128 cost = cost_of_dear;
    Int128 missing = total - static_cast<Int128>(num_bins - j) * capacity - tokens_of_dear;
    for (const std::int32_t id : by_density) {
      const auto unit = static_cast<std::size_t>(id);
      if (missing <= 0) break;
      if (is_dear[unit]) continue;
      const Int128 tokens = units.tokens[unit];
      // The last one counts in part, rounded up: costs are integers.
      cost += tokens <= missing ? static_cast<Int128>(units.costs[unit])
                                : (units.costs[unit] * missing + tokens - 1) / tokens;
      missing -= tokens;
    }
    auto shared = static_cast<Nanoseconds>((cost + j - 1) / j);
    if (j > 1) shared = std::min(shared, order.costs[place - 1] + order.costs[place]);
    bound = std::max(bound, shared);
  }
  return bound;
}

}  // namespace isochron
