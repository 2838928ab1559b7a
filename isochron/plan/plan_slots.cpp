#include "isochron/plan/plan_slots.h"

#include <algorithm>

namespace isochron {

std::optional<ContextKind> find_exchange(const StepPlan& plan, const ContextGroup& group) {
  if (plan.cost.context.size() < 2 || group.ranks.size == 1) return std::nullopt;
  const std::vector<Tokens> lengths = all_lengths(plan);
  std::optional<ContextKind> best;
  Nanoseconds least = 0;
  for (const ContextCost& context : plan.cost.context) {
    const auto link = find_link(context, group.ranks);
    if (!link) continue;
    Nanoseconds cost = link_latency(*link);
    for (const SequenceId id : group.sequences) {
      const bool has_extra = id.index() < plan.batch.extra_cost_ns.size();
      cost += *find_sequence_cost(plan.cost, context, group.ranks, lengths[id.index()],
                                  has_extra ? plan.batch.extra_cost_ns[id.index()] : 0);
    }
    if (!best || cost < least) {
      best = context.kind;
      least = cost;
    }
  }
  return best;
}

void set_slots(const Problem& problem, const DraftSlots& slots, StepPlan& plan) {
  plan.microbatches.clear();
  for (const auto& slot : slots) {
    Slot& groups = plan.microbatches.emplace_back();
    for (const DraftGroup& draft : slot) {
      ContextGroup group{.ranks = draft.ranks, .sequences = {}};
      for (const ItemId item : draft.items) {
        const auto& ids = problem.work().items[static_cast<std::size_t>(item)];
        group.sequences.insert(group.sequences.end(), ids.begin(), ids.end());
      }
      std::sort(group.sequences.begin(), group.sequences.end());
      group.exchange = find_exchange(plan, group);
      groups.push_back(std::move(group));
    }
    std::sort(groups.begin(), groups.end(), [](const ContextGroup& a, const ContextGroup& b) {
      return a.ranks.first < b.ranks.first;
    });
  }
}

}  // namespace isochron
