// The schedule of a shape and a number of slots never changes, so it is put into one sequence of
// operations once; then a pass over it, with the time at which every stage is free and every slot
// has arrived, is the whole simulation. Times are unsigned and stop at 2^62 + 1: a time, a transfer
// and a cost still add up.

#include "isochron/simulate/pipeline_time.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/require.h"
#include "isochron/schedule/execution_order.h"

namespace isochron {

namespace {

// Operations by how many others must come before them, one after the other. Neighbours then do not
// wait for each other, and the processor runs several at once: about twice as fast.
std::vector<PipelineOperation> by_depth(std::vector<PipelineOperation> operations,
                                        const PipelineShape& shape, std::int32_t num_slots) {
  std::vector<std::int64_t> depth_of_stage(static_cast<std::size_t>(shape.stages), 0);
  std::vector<std::int64_t> depth_of_slot(static_cast<std::size_t>(num_slots), 0);
  std::vector<std::pair<std::int64_t, PipelineOperation>> deep;
  deep.reserve(operations.size());
  for (const PipelineOperation& operation : operations) {
    std::int64_t& of_stage =
        depth_of_stage[static_cast<std::size_t>(operation.chunk % shape.stages)];
    std::int64_t& of_slot = depth_of_slot[static_cast<std::size_t>(operation.slot)];
    of_stage = of_slot = std::max(of_stage, of_slot) + 1;
    deep.emplace_back(of_stage, operation);
  }
  std::stable_sort(deep.begin(), deep.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(deep.begin(), deep.end(), operations.begin(),
                 [](const auto& entry) { return entry.second; });
  return operations;
}

}  // namespace

PipelineTime::PipelineTime(const PipelineShape& shape, std::int32_t num_slots, Pass pass)
    : costs_(shape), transfer_(static_cast<std::uint64_t>(shape.transfer_ns)) {
  auto order = find_execution_order(pipeline_schedule(shape, num_slots, pass), shape, num_slots);
  ISOCHRON_ASSERT(order.has_value());
  steps_.reserve(order->size());
  for (const PipelineOperation& operation : by_depth(std::move(*order), shape, num_slots)) {
    const std::size_t column =
        costs_.column(operation.chunk, operation.direction == Direction::backward);
    steps_.push_back({.slot = static_cast<std::uint32_t>(operation.slot),
                      .stage = static_cast<std::uint32_t>(operation.chunk % shape.stages),
                      .cell = static_cast<std::uint32_t>(
                          static_cast<std::size_t>(operation.slot) * costs_.width() + column),
                      .is_sent = is_sent_on(operation, shape) ? 1u : 0u});
  }
  identity_.resize(static_cast<std::size_t>(num_slots));
  std::iota(identity_.begin(), identity_.end(), 0);
  cost_of_slot_.reserve(identity_.size() * costs_.width());
  free_.resize(static_cast<std::size_t>(shape.stages));
  ready_.resize(identity_.size());
}

Nanoseconds PipelineTime::makespan(std::span<const PassCost> cost_of_slot) {
  costs_.clear();
  for (const PassCost& cost : cost_of_slot) costs_.add(cost);
  return makespan(costs_, identity_);
}

Nanoseconds PipelineTime::makespan(const ChunkCosts& costs, std::span<const std::int32_t> order) {
  cost_of_slot_.clear();
  for (const std::int32_t item : order) {
    const auto row = costs.row(static_cast<std::size_t>(item));
    cost_of_slot_.insert(cost_of_slot_.end(), row.begin(), row.end());
  }
  constexpr auto limit = static_cast<std::uint64_t>(max_total_cost) + 1;
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(ready_.begin(), ready_.end(), 0);
  for (const Step& step : steps_) {
    const std::uint64_t start = std::max(free_[step.stage], ready_[step.slot]);
    const std::uint64_t end =
        std::min(limit, start + static_cast<std::uint64_t>(cost_of_slot_[step.cell]));
    free_[step.stage] = end;
    ready_[step.slot] = end + step.is_sent * transfer_;
  }
  return static_cast<Nanoseconds>(std::min(limit, *std::max_element(free_.begin(), free_.end())));
}

}  // namespace isochron
