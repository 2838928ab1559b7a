#include "isochron/balance/assignment.h"

#include <algorithm>

#include "isochron/core/radix_sort.h"

namespace isochron {

DearestFirst dearest_first(std::span<const Nanoseconds> costs) {
  std::vector<std::uint64_t> keys(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    keys[i] = static_cast<std::uint64_t>(max_total_cost - costs[i]);
  }
  DearestFirst order{ascending_positions(keys), {}};
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
  std::vector<Nanoseconds> sum_of_first(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) sum_of_first[i + 1] = sum_of_first[i] + order.costs[i];
  const Nanoseconds total = sum_of_first[n];
  Nanoseconds bound = total / num_bins + (total % num_bins != 0 ? 1 : 0);

  const auto needed = std::min(static_cast<std::size_t>(min_units), n);
  for (std::size_t j = 0; j * k < n; ++j) {
    // Of the j*k+1 dearest some bin holds j+1; what it lacks is at best the cheapest of all.
    Nanoseconds shared = sum_of_first[j * k + 1] - sum_of_first[j * k - j];
    if (j + 1 < needed) shared += total - sum_of_first[n - (needed - j - 1)];
    bound = std::max(bound, shared);
  }
  return bound;
}

}  // namespace isochron
