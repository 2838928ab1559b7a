#include "isochron/plan/plan_slots.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/plan_memory.h"
#include "isochron/simulate/step_totals.h"

namespace isochron {

std::optional<ContextKind> cheapest_exchange(const StepPlan& plan, const ContextGroup& group) {
  if (plan.cost.context.size() < 2 || group.ranks.size == 1) return std::nullopt;
  std::optional<ContextKind> best;
  Nanoseconds least = 0;
  for (const ContextCost& context : plan.cost.context) {
    const auto link = find_link(context, group.ranks);
    if (!link) continue;
    Nanoseconds cost = link_latency(*link);
    for (const SequenceId id : group.sequences) {
      const bool is_real = id.index() < plan.batch.lengths.size();
      const bool has_extra = id.index() < plan.batch.extra_cost_ns.size();
      cost += *find_sequence_cost(plan.cost, context, group.ranks,
                                  is_real ? plan.batch.lengths[id.index()] : padding_row_length,
                                  has_extra ? plan.batch.extra_cost_ns[id.index()] : 0);
    }
    if (best && cost >= least) continue;
    best = context.kind;
    least = cost;
  }
  return best;
}

void set_slots(const Problem& problem, const DraftSlots& slots, StepPlan& plan) {
  plan.microbatches.clear();
  for (const auto& slot : slots) {
    Slot& groups = plan.microbatches.emplace_back();
    groups.reserve(slot.size());
    for (const DraftGroup& draft : slot) {
      ContextGroup group{.ranks = draft.ranks, .sequences = {}};
      group.sequences.reserve(draft.items.size());
      for (const ItemId item : draft.items) {
        const auto ids = problem.sequences_of(item);
        group.sequences.insert(group.sequences.end(), ids.begin(), ids.end());
      }
      std::sort(group.sequences.begin(), group.sequences.end());
      group.exchange = cheapest_exchange(plan, group);
      groups.push_back(std::move(group));
    }
    std::sort(groups.begin(), groups.end(), [](const ContextGroup& a, const ContextGroup& b) {
      return a.ranks.first < b.ranks.first;
    });
  }
}

void set_prediction(StepPlan& plan) {
  StepTotals totals = total_step(plan);
  plan.predicted_step_ns = totals.step_ns;
  plan.peak_activation_bytes = std::move(totals.peak_activation_bytes);
  const auto stages = static_cast<std::size_t>(plan.topology.pipeline.stages);
  double total = 0;
  double busiest = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(plan.topology.ranks); ++r) {
    double busy = 0;
    for (std::size_t s = 0; s < stages; ++s) {
      busy += static_cast<double>(totals.busy_ns[r * stages + s]);
    }
    total += busy;
    busiest = std::max(busiest, busy);
  }
  plan.imbalance = total > 0 ? busiest / (total / plan.topology.ranks) : 1;
}

std::int64_t excess_with(const Problem& problem, const DraftSlots& slots, StepPlan& plan) {
  if (plan.options.max_activation_bytes == 0) return 0;
  set_slots(problem, slots, plan);
  set_prediction(plan);
  return memory_excess(plan);
}

}  // namespace isochron
