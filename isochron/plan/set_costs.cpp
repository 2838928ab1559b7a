// A set runs in the micro-batch of its lowest item and in the best ones of the others.

#include "isochron/plan/set_costs.h"

#include <algorithm>
#include <bit>

#include "isochron/plan/draft_slots.h"

namespace isochron {

std::vector<ItemId> items_of(ItemSet set) {
  std::vector<ItemId> items;
  for (; set != 0; set &= set - 1) items.push_back(static_cast<ItemId>(std::countr_zero(set)));
  return items;
}

SetCosts set_costs(const Problem& problem, RankRange ranks) {
  const auto size = static_cast<std::int32_t>(ranks.size);
  const auto count = static_cast<std::size_t>(1) << problem.num_items();
  SetCosts costs;
  costs.one.assign(count, cannot_run);
  costs.all.assign(count, cannot_run);
  costs.first_bin.assign(count, 0);
  costs.all[0] = 0;
  std::vector<Tokens> tokens(count, 0);
  std::vector<std::int32_t> sequences(count, 0);
  const std::int32_t limit = problem.options().max_sequences;
  // Several exchanges: which one is cheapest depends on the set.
  const bool is_sum = size == 1 || problem.order().has_one_exchange;
  const PriceId price = problem.price_of(ranks);
  for (ItemSet set = 1; set < count; ++set) {
    const ItemSet rest = set & (set - 1);
    const ItemSet low = set ^ rest;
    const auto item = static_cast<ItemId>(std::countr_zero(set));
    tokens[set] = tokens[rest] + problem.tokens(size, item);
    sequences[set] = sequences[rest] + problem.num_sequences(item);
    const bool fits =
        problem.item_fits(size, item) && (rest == 0 || costs.one[rest] < cannot_run) &&
        tokens[set] <= problem.capacity() * size && (limit == 0 || sequences[set] <= limit);
    if (fits && is_sum) {
      costs.one[set] = (rest == 0 ? problem.price(price).fixed : costs.one[rest]) +
                       problem.item_cost(price, item);
    } else if (fits) {
      costs.one[set] = group_time(problem, {.ranks = ranks, .items = items_of(set)});
    }
    if (fits && is_sum) {  // several micro-batches cost no less than one that holds them all
      costs.all[set] = costs.one[set];
      costs.first_bin[set] = set;
      continue;
    }
    // The micro-batch of the lowest item, and the best for the others.
    for (ItemSet with = rest;; with = (with - 1) & rest) {
      const ItemSet bin = low | with;
      const Nanoseconds time = std::min(cannot_run, costs.one[bin] + costs.all[set ^ bin]);
      if (time < costs.all[set]) {
        costs.all[set] = time;
        costs.first_bin[set] = bin;
      }
      if (with == 0) break;
    }
  }
  return costs;
}

}  // namespace isochron
