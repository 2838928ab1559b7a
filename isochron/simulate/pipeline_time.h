#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// How long one pipeline (a rank, or a static group, whose members keep step) takes for its
// micro-batches. Made once for a shape, a number of slots and a pass, asked many times: a call
// allocates nothing and is O(slots * chunks).
class PipelineTime {
 public:
  // Throws what pipeline_schedule() throws.
  PipelineTime(const PipelineShape& shape, std::int32_t num_slots, Pass pass);

  // Until the last operation ends; 2^62 + 1 for anything longer than 2^62. One cost per slot.
  [[nodiscard]] Nanoseconds makespan(std::span<const PassCost> cost_of_slot);

  // The same for rows of `costs`, which was made for the same shape, in the order in which the
  // slots run them.
  [[nodiscard]] Nanoseconds makespan(const ChunkCosts& costs, std::span<const std::int32_t> order);

  [[nodiscard]] std::int32_t num_slots() const { return static_cast<std::int32_t>(ready_.size()); }

 private:
  struct Step {
    std::uint32_t slot;
    std::uint32_t stage;
    std::uint32_t cell;     // of cost_of_slot_
    std::uint32_t is_sent;  // 1 if the next chunk of the slot waits for a transfer, else 0
  };

  void find_steps();

  // Of pipelines that need no list of operations, if nothing adds up to more than 2^62.
  [[nodiscard]] Nanoseconds time_of_waves();
  [[nodiscard]] Nanoseconds time_of_descent() const;

  PipelineShape shape_;
  Pass pass_;
  ChunkCosts costs_;
  std::uint64_t transfer_;
  bool is_simple_;           // no virtual stages, and all stages equal
  std::vector<Step> steps_;  // in an order in which they can run; made when they are needed
  std::vector<std::int32_t> identity_;
  std::vector<Nanoseconds> cost_of_slot_;  // rows of costs, in the order of the slots
  std::vector<Nanoseconds> stages_;        // when each is free, where waves say that
  std::vector<std::uint64_t> free_;        // of each stage
  std::vector<std::uint64_t> ready_;       // of each slot
};

}  // namespace isochron
