#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/simulate/chunk_cost.h"

namespace isochron {

// How long one pipeline trains the rows of `costs` in one order after the other, the same as
// PipelineTime. Orders that are asked one after the other may have much in common: only what
// differs is simulated.
class PipelineWaves {
 public:
  // No virtual stages, a pass that trains, and no sum of all costs and transfers above 2^62.
  [[nodiscard]] static bool can_time(const ChunkCosts& costs, const PipelineShape& shape,
                                     Pass pass);

  // Keeps a reference to `costs`.
  PipelineWaves(const ChunkCosts& costs, const PipelineShape& shape);

  [[nodiscard]] Nanoseconds makespan(std::span<const std::int32_t> order);

  // Operations simulated so far.
  [[nodiscard]] std::int64_t num_operations() const { return num_operations_; }

 private:
  // An order and when each stage is free after each wave; times_[0] is all zero.
  struct Played {
    std::vector<std::int32_t> order;
    std::vector<Nanoseconds> times;
  };

  void run_wave(std::size_t wave, Played& played);

  const ChunkCosts& costs_;
  std::size_t num_stages_;
  std::size_t num_slots_;
  std::size_t num_waves_;
  Nanoseconds transfer_;
  std::array<Played, 2> played_;
  std::size_t latest_ = 0;  // of played_
  std::int64_t num_operations_ = 0;
};

}  // namespace isochron
