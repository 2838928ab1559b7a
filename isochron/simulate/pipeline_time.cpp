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

PipelineTime::PipelineTime(const PipelineShape& shape, std::int32_t num_slots, Pass pass)
    : costs_(shape) {
  const auto order =
      find_execution_order(pipeline_schedule(shape, num_slots, pass), shape, num_slots);
  ISOCHRON_ASSERT(order.has_value());
  steps_.reserve(order->size());
  for (const PipelineOperation& operation : *order) {
    steps_.push_back(
        {.slot = static_cast<std::uint32_t>(operation.slot),
         .stage = static_cast<std::uint32_t>(operation.chunk % shape.stages),
         .column = costs_.column(operation.chunk, operation.direction == Direction::backward),
         .delay =
             is_sent_on(operation, shape) ? static_cast<std::uint64_t>(shape.transfer_ns) : 0});
  }
  identity_.resize(static_cast<std::size_t>(num_slots));
  std::iota(identity_.begin(), identity_.end(), 0);
  free_.resize(static_cast<std::size_t>(shape.stages));
  ready_.resize(identity_.size());
}

Nanoseconds PipelineTime::makespan(std::span<const PassCost> cost_of_slot) {
  costs_.clear();
  for (const PassCost& cost : cost_of_slot) costs_.add(cost);
  return makespan(costs_, identity_);
}

Nanoseconds PipelineTime::makespan(const ChunkCosts& costs, std::span<const std::int32_t> order) {
  constexpr auto limit = static_cast<std::uint64_t>(max_total_cost) + 1;
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(ready_.begin(), ready_.end(), 0);
  for (const Step& step : steps_) {
    const Nanoseconds* row = costs.row(static_cast<std::size_t>(order[step.slot]));
    const std::uint64_t start = std::max(free_[step.stage], ready_[step.slot]);
    const std::uint64_t end = std::min(limit, start + static_cast<std::uint64_t>(row[step.column]));
    free_[step.stage] = end;
    ready_[step.slot] = end + step.delay;
  }
  return static_cast<Nanoseconds>(std::min(limit, *std::max_element(free_.begin(), free_.end())));
}

}  // namespace isochron
