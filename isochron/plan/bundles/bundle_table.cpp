#include "isochron/plan/bundles/bundle_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "isochron/plan/draft_slots.h"

namespace isochron {

bool has_nested_bundles(const Problem& problem) {
  const auto sizes = problem.sizes();
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return false;
  }
  return problem.is_aligned() && problem.num_ranks() % sizes.back() == 0 && !problem.has_speeds() &&
         problem.num_items() != problem.num_bundles() && problem.order().has_one_exchange &&
         has_one_price(problem, sizes);
}

bool is_short_step(const Problem& problem, Nanoseconds bound) {
  constexpr Nanoseconds short_for_a_rank = 6'000'000;
  return bound / problem.num_ranks() < short_for_a_rank;
}

BundleTable::BundleTable(const Problem& problem, std::span<const std::int32_t> sizes)
    : num_bundles_(problem.num_bundles()), max_sequences_(problem.options().max_sequences) {
  for (const std::int32_t size : sizes) {
    const PriceId price = problem.cheapest_price(size);
    Level level{
        .size = size, .fixed = problem.price(price).fixed, .capacity = problem.capacity() * size};
    for (BundleId bundle = 0; bundle < num_bundles_; ++bundle) {
      BlockUse use;
      const bool fits = problem.fits(size, bundle);
      if (fits) {
        use.cost = problem.cost(price, bundle);
        for (const ItemId item : problem.items_of(bundle)) {
          use.tokens += problem.tokens(size, item);
          use.sequences += problem.num_sequences(item);
        }
      }
      level.uses.push_back(use);
      level.fits.push_back(fits);
    }
    levels_.push_back(std::move(level));
  }
}

Draft bundle_draft(const Problem& problem, const std::vector<RankRange>& places) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<ItemId>> items;  // by -size, first
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto more = problem.items_of(static_cast<BundleId>(i));
    auto& there = items[{-places[i].size, places[i].first}];
    there.insert(there.end(), more.begin(), more.end());
  }
  Draft draft;
  for (auto& [place, list] : items) {
    const RankRange ranks{.first = place.second, .size = -place.first};
    const auto size = static_cast<std::int32_t>(ranks.size);
    std::stable_sort(list.begin(), list.end(), [&](ItemId a, ItemId b) {
      return problem.tokens(size, a) > problem.tokens(size, b);
    });
    for (auto& group : first_fit(problem, size, list)) {
      draft.groups.push_back({.ranks = ranks, .items = std::move(group)});
    }
  }
  draft.time = step_time(problem, draft);
  return draft;
}

}  // namespace isochron
