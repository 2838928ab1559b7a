#include "isochron/plan/pipelines/reorder.h"

#include <utility>
#include <vector>

#include "isochron/plan/plan_slots.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/order_microbatches.h"

namespace isochron {

namespace {

PipelineItem pipeline_item(const Problem& problem, const DraftGroup& group) {
  const auto size = static_cast<std::int32_t>(group.ranks.size);
  Tokens tokens = 0;
  for (const ItemId item : group.items) {
    for (const SequenceId id : problem.sequences_of(item)) {
      tokens += padded_length(problem.work().lengths[id.index()], size,
                              problem.options().tensor_parallel);
    }
  }
  PassCost cost = split_cost(group_time(problem, group), problem.model().forward_share);
  if (problem.options().pass == Pass::forward) cost.backward = 0;
  const Tokens tokens_per_rank = tokens / size;
  return {.cost = cost,
          .activation_bytes =
              static_cast<double>(tokens_per_rank) * problem.model().activation_bytes_per_token};
}

}  // namespace

DraftSlots reordered_slots(const Problem& problem, StepPlan& trial, DraftSlots slots,
                           std::int64_t work) {
  set_slots(problem, slots, trial);
  const MicrobatchOrder order = order_slots(trial, work);
  if (order.order.empty()) return slots;
  DraftSlots ordered;
  for (const std::int32_t from : order.order) {
    ordered.push_back(std::move(slots[static_cast<std::size_t>(from)]));
  }
  return ordered;
}

DraftSlots reordered_cells(const Problem& problem, const DraftSlots& slots, std::int64_t work) {
  const std::int64_t size = problem.sizes().front();
  const std::int64_t num_cells = problem.num_ranks() / size;
  DraftSlots ordered(slots.size());
  for (std::int64_t cell = 0; cell < num_cells; ++cell) {
    std::vector<std::vector<const DraftGroup*>> groups(slots.size());
    std::vector<PipelineItem> items;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      for (const DraftGroup& group : slots[s]) {
        if (group.ranks.first / size == cell) groups[s].push_back(&group);
      }
      items.push_back(pipeline_item(problem, *groups[s].front()));
    }
    const MicrobatchOrder order =
        order_microbatches(items, problem.topology().pipeline,
                           {.pass = problem.options().pass,
                            .max_activation_bytes = problem.options().max_activation_bytes,
                            .max_work = work / num_cells,
                            .bound_work = 0});
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const std::size_t from = order.order.empty() ? s : static_cast<std::size_t>(order.order[s]);
      for (const DraftGroup* group : groups[from]) ordered[s].push_back(*group);
    }
  }
  return ordered;
}

}  // namespace isochron
