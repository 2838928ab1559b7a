#include "isochron/plan/deal.h"

namespace isochron {

DraftSlots deal_in_order(const Problem& problem) {
  const std::int32_t size = problem.sizes().front();
  std::vector<RankRange> cells;
  for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
    const RankRange ranks{.first = first, .size = size};
    if (problem.price_of(ranks) >= 0) cells.push_back(ranks);
  }
  const std::int32_t max_sequences = problem.options().max_sequences;
  struct Open {
    std::size_t slot = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    std::int32_t items = 0;
  };
  std::vector<Open> open(cells.size());
  std::vector<std::vector<DraftGroup>> slots;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::size_t cell = static_cast<std::size_t>(bundle) % cells.size();
    Open& last = open[cell];
    const RankRange ranks = cells[cell];
    for (const ItemId item : problem.items_of(bundle)) {
      const Tokens tokens = problem.tokens(size, item);
      const std::int32_t sequences = problem.num_sequences(item);
      const bool is_full = last.tokens + tokens > problem.capacity() * size ||
                           (max_sequences > 0 && last.sequences + sequences > max_sequences);
      if (last.items > 0 && is_full) last = {.slot = last.slot + 1};
      if (last.slot >= slots.size()) slots.resize(last.slot + 1);
      if (last.items == 0) slots[last.slot].push_back({.ranks = ranks});
      for (DraftGroup& group : slots[last.slot]) {
        if (group.ranks == ranks) group.items.push_back(item);
      }
      last.tokens += tokens;
      last.sequences += sequences;
      ++last.items;
    }
  }
  if (problem.options().counts == Counts::equal) {
    equalize(problem,
             problem.topology().pipeline.virtual_ > 1 ? problem.topology().pipeline.group : 1,
             slots);
  }
  return slots;
}

}  // namespace isochron
