// The schedule of a shape and a number of slots never changes, so it is put into one sequence of
// operations once; then a pass over it, with the time at which every stage is free and every slot
// has arrived, is the whole simulation. Times are unsigned and stop at 2^62 + 1: a time, a transfer
// and a cost still add up.
//
// Two kinds are simpler. 1F1B of equal stages goes in waves (pipeline_waves.cpp). Forwards through
// equal stages go down once, somewhere, and the longest path does so with the longest slot.

#include "isochron/simulate/pipeline_time.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/require.h"
#include "isochron/schedule/execution_order.h"
#include "isochron/schedule/known_schedule.h"
#include "isochron/schedule/require_schedule.h"
#include "isochron/simulate/wave.h"

namespace isochron {

PipelineTime::PipelineTime(const PipelineShape& shape, std::int32_t num_slots, Pass pass)
    : shape_(shape),
      pass_(pass),
      costs_(shape),
      transfer_(static_cast<std::uint64_t>(shape.transfer_ns)),
      is_simple_(shape.virtual_ == 1 && shape.shares.empty()) {
  require_schedule(shape, num_slots);
  identity_.resize(static_cast<std::size_t>(num_slots));
  std::iota(identity_.begin(), identity_.end(), 0);
  cost_of_slot_.reserve(identity_.size() * costs_.width());
  stages_.resize(static_cast<std::size_t>(shape.stages));
  free_.resize(stages_.size());
  ready_.resize(identity_.size());
}

// Operations by how many others must come before them, one after the other. Neighbours then do not
// wait for each other, and the processor runs several at once: about twice as fast.
void PipelineTime::find_steps() {
  const auto known = known_schedule(shape_, num_slots(), pass_);
  const std::vector<PipelineOperation>& order = known->operations;
  std::vector<std::uint32_t> depth_of_stage(stages_.size(), 0);
  std::vector<std::uint32_t> depth_of_slot(identity_.size(), 0);
  std::vector<std::uint32_t> depths;
  depths.reserve(order.size());
  std::vector<std::size_t> next(1, 0);  // place of a step of each depth
  for (const PipelineOperation& operation : order) {
    std::uint32_t& of_stage =
        depth_of_stage[static_cast<std::size_t>(operation.chunk % shape_.stages)];
    std::uint32_t& of_slot = depth_of_slot[static_cast<std::size_t>(operation.slot)];
    const std::uint32_t depth = std::max(of_stage, of_slot);
    of_stage = of_slot = depth + 1;
    if (depth + 2 > next.size()) next.resize(depth + 2, 0);
    ++next[depth + 1];
    depths.push_back(depth);
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  steps_.resize(order.size());
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const PipelineOperation& operation = order[i];
    const std::size_t column =
        costs_.column(operation.chunk, operation.direction == Direction::backward);
    steps_[next[depths[i]]++] = {
        .slot = static_cast<std::uint32_t>(operation.slot),
        .stage = static_cast<std::uint32_t>(operation.chunk % shape_.stages),
        .cell = static_cast<std::uint32_t>(
            static_cast<std::size_t>(operation.slot) * costs_.width() + column),
        .is_sent = is_sent_on(operation, shape_) ? 1u : 0u};
  }
}

Nanoseconds PipelineTime::time_of_waves() {
  std::fill(stages_.begin(), stages_.end(), 0);
  const WaveShape wave_shape{
      .num_stages = stages_.size(), .num_slots = identity_.size(), .transfer = shape_.transfer_ns};
  const auto row_of = [&](std::size_t slot) { return cost_of_slot_.data() + 2 * slot; };
  for (std::size_t wave = 0; wave + 1 < identity_.size() + stages_.size(); ++wave) {
    play_wave(wave_shape, wave, row_of, stages_.data(), stages_.data());
  }
  return stages_.front();
}

Nanoseconds PipelineTime::time_of_steps() {
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(ready_.begin(), ready_.end(), 0);
  std::uint64_t* free = free_.data();
  std::uint64_t* ready = ready_.data();
  const Nanoseconds* costs = cost_of_slot_.data();
  for (const Step& step : steps_) {
    const std::uint64_t end =
        std::max(free[step.stage], ready[step.slot]) + static_cast<std::uint64_t>(costs[step.cell]);
    free[step.stage] = end;
    ready[step.slot] = end;
  }
  return static_cast<Nanoseconds>(*std::max_element(free_.begin(), free_.end()));
}

Nanoseconds PipelineTime::time_of_descent() const {
  Nanoseconds sum = 0;
  Nanoseconds longest = 0;
  for (std::size_t i = 0; i < cost_of_slot_.size(); i += 2) {
    sum += cost_of_slot_[i];
    longest = std::max(longest, cost_of_slot_[i]);
  }
  return sum + (shape_.stages - 1) * (longest + shape_.transfer_ns);
}

Nanoseconds PipelineTime::makespan(std::span<const PassCost> cost_of_slot) {
  costs_.clear();
  for (const PassCost& cost : cost_of_slot) costs_.add(cost);
  return makespan(costs_, identity_);
}

Nanoseconds PipelineTime::makespan(const ChunkCosts& costs, std::span<const std::int32_t> order) {
  cost_of_slot_.resize(order.size() * costs.width());
  Nanoseconds* place = cost_of_slot_.data();
  double sum = 0;
  for (const std::int32_t item : order) {
    const auto row = costs.row(static_cast<std::size_t>(item));
    for (const Nanoseconds cost : row) *place++ = cost;
    sum += static_cast<double>(row.front()) + static_cast<double>(row.back());
  }
  if (identity_.empty()) return 0;
  const double transfers =
      2 * static_cast<double>(identity_.size()) * static_cast<double>(transfer_);
  const bool is_small = shape_.shares.empty() && (sum + transfers) * shape_.num_chunks() <
                                                     static_cast<double>(max_total_cost) / 2;
  if (is_simple_ && is_small) {
    return pass_ == Pass::train ? time_of_waves() : time_of_descent();
  }
  if (steps_.empty()) find_steps();
  if (is_small && transfer_ == 0) return time_of_steps();
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
