#include "isochron/plan/bundles/sized_items.h"

#include <algorithm>
#include <utility>

namespace isochron {

std::vector<SizedItem> sized_items(const Problem& problem, RankRange ranks,
                                   std::span<const ItemId> items) {
  const PriceId price = problem.price_of(ranks);
  const auto size = static_cast<std::int32_t>(ranks.size);
  const bool is_limited = problem.options().max_sequences > 0;
  std::vector<SizedItem> sized;
  for (const ItemId item : items) {
    sized.push_back({.cost = problem.item_cost(price, item),
                     .tokens = problem.tokens(size, item),
                     .sequences = is_limited ? problem.num_sequences(item) : 0,
                     .id = item});
  }
  std::sort(sized.begin(), sized.end(), [](const SizedItem& a, const SizedItem& b) {
    return std::pair(-a.cost, a.id) < std::pair(-b.cost, b.id);
  });
  return sized;
}

}  // namespace isochron
