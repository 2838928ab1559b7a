#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "isochron/core/round.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// What one micro-batch costs in a pass over the whole model; both parts together at most 2^62.
struct PassCost {
  Nanoseconds forward = 0;
  Nanoseconds backward = 0;  // 0 if the pass is forward only

  bool operator==(const PassCost&) const = default;
};

// The forward part of a cost is llround(forward_share * cost), the backward part what is left.
[[nodiscard]] inline PassCost split_cost(Nanoseconds cost, double forward_share) {
  // Above 2^53 the product may round to more than the cost.
  const Nanoseconds forward =
      std::min<Nanoseconds>(cost, rounded(forward_share * static_cast<double>(cost)));
  return {.forward = forward, .backward = cost - forward};
}

// What a chunk takes of a cost: an equal part or its share, rounded up; all of it if there is but
// one chunk.
[[nodiscard]] Nanoseconds chunk_cost(const PipelineShape& shape, Nanoseconds cost,
                                     std::int32_t chunk);

// Bytes that a chunk holds of the activations of a micro-batch over all chunks: its share, rounded
// to the nearest; 2^62 + 1 for anything above 2^62.
[[nodiscard]] std::int64_t chunk_bytes(const PipelineShape& shape, double activation_bytes,
                                       std::int32_t chunk);

// The costs of micro-batches on every chunk, one row for each micro-batch. Equal chunks share a
// column, so that a row is two numbers.
class ChunkCosts {
 public:
  explicit ChunkCosts(const PipelineShape& shape);

  // Grows without limit; clear() keeps the memory.
  void add(const PassCost& cost);
  void set(std::size_t row, const PassCost& cost);
  void clear() { table_.clear(); }

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t num_rows() const { return table_.size() / width_; }
  [[nodiscard]] std::span<const Nanoseconds> row(std::size_t index) const {
    return {table_.data() + index * width_, width_};
  }
  // Where an operation finds its cost in a row.
  [[nodiscard]] std::size_t column(std::int32_t chunk, bool is_backward) const {
    const std::size_t half = is_backward ? width_ / 2 : 0;
    return width_ == 2 ? half : half + static_cast<std::size_t>(chunk);
  }

 private:
  PipelineShape shape_;
  std::size_t width_;
  std::vector<Nanoseconds> table_;
};

}  // namespace isochron
