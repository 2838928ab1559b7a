#include "isochron/plan/deal.h"

namespace isochron {

DraftSlots deal_in_order(const Problem& problem) {
  const std::int32_t size = problem.sizes().front();
  const std::int32_t num_cells = problem.num_ranks() / size;
  const std::int32_t max_sequences = problem.options().max_sequences;
  struct Open {
    std::size_t slot = 0;
    Tokens tokens = 0;
    std::int32_t sequences = 0;
    std::int32_t items = 0;
  };
  std::vector<Open> open(static_cast<std::size_t>(num_cells));
  std::vector<std::vector<DraftGroup>> slots;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t cell = bundle % num_cells;
    Open& last = open[static_cast<std::size_t>(cell)];
    const RankRange ranks{.first = static_cast<std::int64_t>(cell) * size, .size = size};
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
