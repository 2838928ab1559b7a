#include "isochron/plan/bundles/wide_places.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace isochron {

std::optional<WidePlaces> find_wide_places(const BundleTable& table, std::int32_t num_ranks,
                                           std::int32_t level, Nanoseconds limit,
                                           std::span<const BundleId> widened) {
  WidePlaces places;
  places.ranks.assign(static_cast<std::size_t>(table.num_bundles()), {.first = 0, .size = 0});
  places.before.assign(static_cast<std::size_t>(num_ranks / table.size(level)), 0);
  std::vector<std::tuple<std::int32_t, Nanoseconds, BundleId>> order;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    const bool is_widened = std::find(widened.begin(), widened.end(), bundle) != widened.end();
    Nanoseconds latest = limit;
    if (is_widened && table.fits(level, bundle)) {
      latest = std::min(limit, table.time(level, bundle) - 1);
    }
    const auto is_late = [&](std::int32_t l) {
      return !table.fits(l, bundle) || table.time(l, bundle) > latest;
    };
    std::int32_t l = is_widened ? level + 1 : 0;
    while (l < table.num_levels() && is_late(l)) ++l;
    if (l == table.num_levels()) return std::nullopt;
    if (l > level) order.emplace_back(-l, -table.time(l, bundle), bundle);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [l, time, bundle] : order) {
    const auto span = static_cast<std::size_t>(table.size(-l) / table.size(level));
    const auto latest = [&](std::size_t first) {
      const auto begin = places.before.begin() + static_cast<std::ptrdiff_t>(first);
      return *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(span));
    };
    std::size_t best = 0;
    for (std::size_t first = 0; first + span <= places.before.size(); first += span) {
      if (latest(first) < latest(best)) best = first;
    }
    const Nanoseconds until = latest(best) - time;
    for (std::size_t k = best; k < best + span; ++k) places.before[k] = until;
    places.ranks[static_cast<std::size_t>(bundle)] = {
        .first = static_cast<std::int64_t>(best) * table.size(level), .size = table.size(-l)};
  }
  return places;
}

std::vector<Nanoseconds> narrower_limits(const BundleTable& table, std::int32_t level,
                                         const WidePlaces& places) {
  constexpr std::size_t most = 3;
  std::vector<Nanoseconds> limits;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    for (std::int32_t l = level; l < table.num_levels(); ++l) {
      if (table.size(l) >= places.ranks[static_cast<std::size_t>(bundle)].size) break;
      if (table.fits(l, bundle)) limits.push_back(table.time(l, bundle));
    }
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  limits.resize(std::min(most, limits.size()));
  return limits;
}

}  // namespace isochron
