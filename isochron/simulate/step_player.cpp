// All ranks follow one schedule, so its operations are played in one order in which they can run;
// in each, the groups of its slot run side by side. A group begins when its input has arrived and
// its last member is free at that stage, and ends for all members at once: a pass over operations,
// groups and members is the whole simulation.

#include "isochron/simulate/step_player.h"

#include <numeric>
#include <utility>

#include "isochron/schedule/in_flight.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

double activation_bytes(const StepPlan& plan, const ContextGroup& group) {
  Tokens tokens = 0;
  for (const SequenceId id : group.sequences) {
    const Tokens length = id.index() < plan.batch.lengths.size() ? plan.batch.lengths[id.index()]
                                                                 : padding_row_length;
    tokens += padded_length(length, group.ranks.size, plan.options.tensor_parallel);
  }
  const Tokens tokens_per_rank = tokens / group.ranks.size;
  return static_cast<double>(tokens_per_rank) * plan.cost.activation_bytes_per_token;
}

PassCost pass_cost(const StepPlan& plan, const ContextGroup& group) {
  const Nanoseconds cost = group_cost(plan, group);
  return plan.options.pass == Pass::train ? split_cost(cost, plan.cost.forward_share)
                                          : PassCost{.forward = cost};
}

std::vector<std::vector<PlayedGroup>> played_groups(const StepPlan& plan) {
  std::vector<std::vector<PlayedGroup>> slots;
  slots.reserve(plan.microbatches.size());
  for (const Slot& slot : plan.microbatches) {
    auto& groups = slots.emplace_back();
    groups.reserve(slot.size());
    for (const ContextGroup& group : slot) {
      groups.push_back({.ranks = group.ranks,
                        .cost = pass_cost(plan, group),
                        .activation_bytes = activation_bytes(plan, group)});
    }
  }
  return slots;
}

}  // namespace

StepPlayer::StepPlayer(const StepPlan& plan)
    : StepPlayer(plan.topology, plan.options, played_groups(plan)) {}

StepPlayer::StepPlayer(const Topology& topology, const PlanOptions& options,
                       std::vector<std::vector<PlayedGroup>> slots)
    : shape_(topology.pipeline),
      num_ranks_(topology.ranks),
      pass_(options.pass),
      sync_(options.sync),
      schedule_(known_schedule(shape_, static_cast<std::int32_t>(slots.size()), pass_)),
      costs_(shape_),
      groups_of_slot_(std::move(slots)) {
  const bool is_paced = sync_ == Sync::microbatch && shape_.stages > 1;
  ready_.reserve(groups_of_slot_.size());
  for (auto& groups : groups_of_slot_) {
    PassCost slowest;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      PlayedGroup& group = groups[i];
      slowest = {.forward = std::max(slowest.forward, group.cost.forward),
                 .backward = std::max(slowest.backward, group.cost.backward)};
      group.position = static_cast<std::int32_t>(i);
      group.cost_row = group.pace_row = costs_.num_rows();
      costs_.add(group.cost);
    }
    if (is_paced) {
      for (PlayedGroup& group : groups) group.pace_row = costs_.num_rows();
      costs_.add(slowest);
    }
    ready_.emplace_back(groups.size(), 0);
  }
  free_.resize(static_cast<std::size_t>(num_ranks_) * static_cast<std::size_t>(shape_.stages));
}

Nanoseconds StepPlayer::time() {
  std::vector<std::int32_t> order(groups_of_slot_.size());
  std::iota(order.begin(), order.end(), 0);
  return play(order, [](const PipelineOperation&, const PlayedGroup&, Nanoseconds, Nanoseconds) {});
}

const PlayedGroup* StepPlayer::find_group(std::int32_t rank, std::int32_t slot) const {
  const auto& groups = groups_of_slot_[static_cast<std::size_t>(slot)];
  const auto after = std::upper_bound(
      groups.begin(), groups.end(), rank,
      [](std::int64_t r, const PlayedGroup& group) { return r < group.ranks.first; });
  if (after == groups.begin()) return nullptr;
  const PlayedGroup& group = *(after - 1);
  return rank < group.ranks.first + group.ranks.size ? &group : nullptr;
}

std::vector<std::int64_t> StepPlayer::peak_bytes(std::span<const std::int32_t> order) const {
  // By rank, then slot.
  std::vector<double> bytes(static_cast<std::size_t>(num_ranks_) * order.size(), 0);
  for (std::size_t slot = 0; slot < order.size(); ++slot) {
    for (const PlayedGroup& group : groups_of_slot_[static_cast<std::size_t>(order[slot])]) {
      const auto first = static_cast<std::size_t>(group.ranks.first);
      for (std::size_t rank = first; rank < first + static_cast<std::size_t>(group.ranks.size);
           ++rank) {
        bytes[rank * order.size() + slot] = group.activation_bytes;
      }
    }
  }
  std::vector<std::int64_t> peaks;
  peaks.reserve(static_cast<std::size_t>(num_ranks_));
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(num_ranks_); ++rank) {
    const auto of_slot = std::span(bytes).subspan(rank * order.size(), order.size());
    // Neighbours are often in the same groups.
    if (rank > 0 && std::equal(of_slot.begin(), of_slot.end(),
                               of_slot.begin() - static_cast<std::ptrdiff_t>(order.size()))) {
      peaks.push_back(peaks.back());
      continue;
    }
    std::int64_t peak = 0;
    for (const auto& operations : schedule_->stages) {
      peak = std::max(peak,
                      peak_in_flight(operations, pass_, [&](std::int32_t slot, std::int32_t chunk) {
                        return chunk_bytes(shape_, of_slot[static_cast<std::size_t>(slot)], chunk);
                      }));
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace isochron
