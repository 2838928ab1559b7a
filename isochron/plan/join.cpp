#include "isochron/plan/join.h"

#include <algorithm>
#include <vector>

#include "isochron/plan/plan_slots.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

bool has_room(const StepPlan& plan, const std::vector<Tokens>& lengths, const ContextGroup& group,
              std::span<const SequenceId> sequences) {
  Tokens tokens = 0;
  const auto add = [&](SequenceId id) {
    tokens += padded_length(lengths[id.index()], group.ranks.size, plan.options.tensor_parallel);
  };
  std::for_each(group.sequences.begin(), group.sequences.end(), add);
  std::for_each(sequences.begin(), sequences.end(), add);
  const auto most = static_cast<std::size_t>(plan.options.max_sequences);
  return tokens <= plan.topology.capacity * group.ranks.size &&
         (most == 0 || group.sequences.size() + sequences.size() <= most);
}

}  // namespace

bool join(std::span<const SequenceId> sequences, StepPlan& plan) {
  const std::vector<Tokens> lengths = all_lengths(plan);
  ContextGroup* cheapest = nullptr;
  Nanoseconds least = 0;
  for (Slot& slot : plan.microbatches) {
    for (ContextGroup& group : slot) {
      if (!has_room(plan, lengths, group, sequences)) continue;
      const Nanoseconds cost = group_cost(plan, group);
      if (cheapest != nullptr && cost >= least) continue;
      cheapest = &group;
      least = cost;
    }
  }
  if (cheapest == nullptr) return false;
  cheapest->sequences.insert(cheapest->sequences.end(), sequences.begin(), sequences.end());
  std::sort(cheapest->sequences.begin(), cheapest->sequences.end());
  cheapest->exchange = find_exchange(plan, *cheapest);
  return true;
}

}  // namespace isochron
