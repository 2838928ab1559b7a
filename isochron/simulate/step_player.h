#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "isochron/schedule/execution_order.h"
#include "isochron/schedule/known_schedule.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// A group of a slot, with what it takes to play it.
struct PlayedGroup {
  RankRange ranks;
  std::int32_t position = 0;  // in its slot
  PassCost cost;              // of each member
  std::size_t cost_row = 0;   // where the player keeps the costs on each chunk
  std::size_t pace_row = 0;
  double activation_bytes = 0;  // of each member, over all chunks
};

// A plan made ready to be played again and again, with its slots in any order: costs are worked out
// once, and playing allocates nothing. Keeps no reference to the plan.
class StepPlayer {
 public:
  // Throws what simulate() throws for a plan whose costs it cannot work out.
  explicit StepPlayer(const StepPlan& plan);
  // The same from groups of which `ranks`, `cost` and `activation_bytes` are known, those of a slot
  // by their ranks.
  StepPlayer(const Topology& topology, const PlanOptions& options,
             std::vector<std::vector<PlayedGroup>> slots);

  // Until the last rank is done; 2^62 + 1 for anything longer than 2^62. The slots of the schedule
  // run those of the plan in `order`. Calls visit(operation, group, begin_ns, end_ns) for every
  // operation of every group, with the slot of the plan, in an order in which they can run; times
  // above 2^62 are cut as well.
  template <class Visit>
  Nanoseconds play(std::span<const std::int32_t> order, Visit visit);
  // For slots in the order of the plan.
  [[nodiscard]] Nanoseconds time();

  // The most that each rank holds on its fullest stage.
  [[nodiscard]] std::vector<std::int64_t> peak_bytes(std::span<const std::int32_t> order) const;

  [[nodiscard]] std::int32_t num_slots() const {
    return static_cast<std::int32_t>(groups_of_slot_.size());
  }
  [[nodiscard]] std::span<const PlayedGroup> groups(std::int32_t slot) const {
    return groups_of_slot_[static_cast<std::size_t>(slot)];
  }
  // The group of a rank in a slot; none if the rank is not in it.
  [[nodiscard]] const PlayedGroup* find_group(std::int32_t rank, std::int32_t slot) const;
  [[nodiscard]] const PipelineShape& shape() const { return shape_; }
  [[nodiscard]] std::int32_t num_ranks() const { return num_ranks_; }
  [[nodiscard]] Pass pass() const { return pass_; }
  [[nodiscard]] Sync sync() const { return sync_; }

 private:
  using Time = std::uint64_t;  // a time, a transfer and a cost of up to 2^62 add up
  static constexpr Time limit = static_cast<Time>(max_total_cost) + 1;

  PipelineShape shape_;
  std::int32_t num_ranks_;
  Pass pass_;
  Sync sync_;
  std::shared_ptr<const KnownSchedule> schedule_;
  ChunkCosts costs_;
  std::vector<std::vector<PlayedGroup>> groups_of_slot_;
  std::vector<std::vector<Time>> ready_;  // of each group of a slot
  std::vector<Time> free_;                // of each rank and stage
};

template <class Visit>
Nanoseconds StepPlayer::play(std::span<const std::int32_t> order, Visit visit) {
  std::fill(free_.begin(), free_.end(), 0);
  for (auto& times : ready_) std::fill(times.begin(), times.end(), 0);
  const auto num_stages = static_cast<std::size_t>(shape_.stages);
  const auto transfer = static_cast<Time>(shape_.transfer_ns);
  // With stages, the pace of the groups says that all wait.
  const bool meets = sync_ == Sync::microbatch && shape_.stages == 1;
  Time last = 0;
  for (PipelineOperation operation : schedule_->operations) {
    operation.slot = order[static_cast<std::size_t>(operation.slot)];
    const auto slot = static_cast<std::size_t>(operation.slot);
    const bool is_forward = operation.direction == Direction::forward;
    const std::size_t column = costs_.column(operation.chunk, !is_forward);
    const Time delay = is_sent_on(operation, shape_) ? transfer : 0;
    const auto stage = static_cast<std::size_t>(operation.chunk) % num_stages;
    for (std::size_t i = 0; i < groups_of_slot_[slot].size(); ++i) {
      const PlayedGroup& group = groups_of_slot_[slot][i];
      const auto first = static_cast<std::size_t>(group.ranks.first) * num_stages + stage;
      const auto end_place = first + static_cast<std::size_t>(group.ranks.size) * num_stages;
      Time begin = ready_[slot][i];
      for (std::size_t place = first; place < end_place; place += num_stages) {
        begin = std::max(begin, free_[place]);
      }
      begin = std::min(limit, begin);
      const Time free_again =
          std::min(limit, begin + static_cast<Time>(costs_.row(group.pace_row)[column]));
      for (std::size_t place = first; place < end_place; place += num_stages) {
        free_[place] = free_again;
      }
      ready_[slot][i] = free_again + delay;
      last = std::max(last, free_again);
      visit(operation, group, static_cast<Nanoseconds>(begin),
            static_cast<Nanoseconds>(
                std::min(limit, begin + static_cast<Time>(costs_.row(group.cost_row)[column]))));
    }
    const bool ends_slot = !is_forward || pass_ == Pass::forward;
    if (meets && ends_slot) std::fill(free_.begin(), free_.end(), last);
  }
  return static_cast<Nanoseconds>(last);
}

}  // namespace isochron
