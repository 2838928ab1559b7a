#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/schedule/pipeline_schedule.h"

namespace isochron {

// What one pipeline holds at its fullest stage, for micro-batches with these activation bytes (over
// all chunks) in any order. Made once, asked many times: a call allocates nothing.
class PipelineMemory {
 public:
  // Throws what pipeline_schedule() throws.
  PipelineMemory(const PipelineShape& shape, Pass pass, std::span<const double> activation_bytes);

  // 2^62 + 1 for anything above 2^62.
  [[nodiscard]] std::int64_t peak_bytes(std::span<const std::int32_t> order) const;

  // No order holds less.
  [[nodiscard]] std::int64_t lower_bound() const;

 private:
  [[nodiscard]] std::int64_t bytes_of(std::size_t item, std::int32_t chunk) const {
    return bytes_[item * num_columns_ + (num_columns_ == 1 ? 0 : static_cast<std::size_t>(chunk))];
  }
  [[nodiscard]] std::int64_t window_bound(std::int32_t stage) const;

  PipelineShape shape_;
  Pass pass_;
  PipelineSchedule schedule_;
  std::size_t num_columns_;  // one if all chunks are equal
  std::size_t num_slots_;
  std::vector<std::int64_t> bytes_;
};

}  // namespace isochron
