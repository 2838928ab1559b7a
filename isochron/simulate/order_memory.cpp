// A stage of 1F1B holds windows of as many consecutive slots as there are stages from it on. The
// largest slot stands in a window with others, at best the smallest; and the windows that tile the
// order hold together at least the smallest slots that fill them, so one holds their mean.

#include "isochron/simulate/order_memory.h"

#include <algorithm>
#include <numeric>

#include "isochron/core/int128.h"
#include "isochron/schedule/in_flight.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

PipelineMemory::PipelineMemory(const PipelineShape& shape, Pass pass,
                               std::span<const double> activation_bytes)
    : shape_(shape),
      pass_(pass),
      schedule_(pipeline_schedule(shape, static_cast<std::int32_t>(activation_bytes.size()), pass)),
      num_columns_(shape.shares.empty() ? 1 : static_cast<std::size_t>(shape.num_chunks())),
      num_slots_(activation_bytes.size()) {
  for (const double bytes : activation_bytes) {
    for (std::size_t chunk = 0; chunk < num_columns_; ++chunk) {
      bytes_.push_back(chunk_bytes(shape, bytes, static_cast<std::int32_t>(chunk)));
    }
  }
}

std::int64_t PipelineMemory::peak_bytes(std::span<const std::int32_t> order) const {
  std::int64_t peak = 0;
  for (const auto& operations : schedule_) {
    peak = std::max(
        peak, peak_in_flight(operations, pass_, [&](std::int32_t slot, std::int32_t chunk) {
          return bytes_of(static_cast<std::size_t>(order[static_cast<std::size_t>(slot)]), chunk);
        }));
  }
  return peak;
}

std::int64_t PipelineMemory::lower_bound() const {
  if (num_slots_ == 0) return 0;
  std::int64_t bound = *std::max_element(bytes_.begin(), bytes_.end());
  if (pass_ == Pass::forward || shape_.virtual_ > 1) return bound;
  for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
    bound = std::max(bound, window_bound(stage));
  }
  return bound;
}

std::int64_t PipelineMemory::window_bound(std::int32_t stage) const {
  std::vector<std::int64_t> ascending;
  for (std::size_t item = 0; item < num_slots_; ++item) ascending.push_back(bytes_of(item, stage));
  std::sort(ascending.begin(), ascending.end());
  const auto sum_of_smallest = [&](std::size_t count) {
    return std::accumulate(ascending.begin(),
                           ascending.begin() + static_cast<std::ptrdiff_t>(count), Int128{0});
  };
  const std::size_t width = std::min(num_slots_, static_cast<std::size_t>(shape_.stages - stage));
  const std::size_t num_windows = num_slots_ / width;
  const Int128 tiled = sum_of_smallest(num_windows * width);
  const auto divisor = static_cast<Int128>(num_windows);
  const Int128 bound =
      std::max(ascending.back() + sum_of_smallest(width - 1), (tiled + divisor - 1) / divisor);
  return static_cast<std::int64_t>(std::min<Int128>(bound, Int128{max_total_cost} + 1));
}

}  // namespace isochron
