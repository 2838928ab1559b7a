#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "isochron/simulate/pipeline_time.h"

namespace isochron::oracle {

// The least time of all orders that `is_allowed` accepts; nothing if there is none. Tries every
// order: for up to eight micro-batches.
template <class IsAllowed>
[[nodiscard]] std::optional<Nanoseconds> best_order_time(const std::vector<PassCost>& costs,
                                                         const PipelineShape& shape, Pass pass,
                                                         IsAllowed is_allowed) {
  ChunkCosts rows(shape);
  for (const PassCost& cost : costs) rows.add(cost);
  std::vector<std::int32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  PipelineTime time(shape, static_cast<std::int32_t>(costs.size()), pass);
  std::optional<Nanoseconds> best;
  do {
    if (!is_allowed(order)) continue;
    const Nanoseconds candidate = time.makespan(rows, order);
    best = std::min(best.value_or(candidate), candidate);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

[[nodiscard]] inline Nanoseconds best_order_time(const std::vector<PassCost>& costs,
                                                 const PipelineShape& shape, Pass pass) {
  return *best_order_time(costs, shape, pass, [](const auto&) { return true; });
}

}  // namespace isochron::oracle
