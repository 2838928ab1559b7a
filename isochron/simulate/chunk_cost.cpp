#include "isochron/simulate/chunk_cost.h"

namespace isochron {

Nanoseconds chunk_cost(const PipelineShape& shape, Nanoseconds cost, std::int32_t chunk) {
  const std::int32_t num_chunks = shape.num_chunks();
  if (num_chunks == 1) return cost;
  if (shape.shares.empty()) return cost / num_chunks + (cost % num_chunks != 0 ? 1 : 0);
  return rounded_up(static_cast<double>(cost) * shape.shares[static_cast<std::size_t>(chunk)]);
}

std::int64_t chunk_bytes(const PipelineShape& shape, double activation_bytes, std::int32_t chunk) {
  const double share = shape.shares.empty() ? 1.0 / shape.num_chunks()
                                            : shape.shares[static_cast<std::size_t>(chunk)];
  const double bytes = activation_bytes * share;
  if (bytes > static_cast<double>(max_total_cost)) return max_total_cost + 1;
  return rounded(bytes);
}

ChunkCosts::ChunkCosts(const PipelineShape& shape)
    : shape_(shape),
      width_(shape.shares.empty() ? 2 : 2 * static_cast<std::size_t>(shape.num_chunks())) {}

void ChunkCosts::add(const PassCost& cost) {
  if (width_ == 2) {
    table_.push_back(chunk_cost(shape_, cost.forward, 0));
    table_.push_back(chunk_cost(shape_, cost.backward, 0));
    return;
  }
  table_.resize(table_.size() + width_);
  set(num_rows() - 1, cost);
}

void ChunkCosts::set(std::size_t row, const PassCost& cost) {
  if (width_ == 2) {
    table_[2 * row] = chunk_cost(shape_, cost.forward, 0);
    table_[2 * row + 1] = chunk_cost(shape_, cost.backward, 0);
    return;
  }
  const auto num_columns = static_cast<std::int32_t>(width_ / 2);
  Nanoseconds* place = table_.data() + row * width_;
  for (const Nanoseconds part : {cost.forward, cost.backward}) {
    for (std::int32_t chunk = 0; chunk < num_columns; ++chunk) {
      *place++ = chunk_cost(shape_, part, chunk);
    }
  }
}

}  // namespace isochron
