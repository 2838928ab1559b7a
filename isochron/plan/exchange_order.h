#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/cost/cost_model.h"

namespace isochron {

// What is known of the costs of groups, whatever they hold.
struct ExchangeOrder {
  // No place is cheaper than the first ranks: no link is cheaper than one of a smaller block.
  bool has_ordered_links = true;
  // On every link of every size one exchange is the cheapest for all that a micro-batch may hold.
  bool has_one_exchange = true;
  // By size: where both hold, whether no larger group has the smaller area, or latency.
  std::vector<bool> grows_from = {};
};

// For groups of these sizes, ascending, for each of which there is an exchange.
[[nodiscard]] ExchangeOrder exchange_order(const CostModel& cost,
                                           std::span<const std::int32_t> sizes);

}  // namespace isochron
