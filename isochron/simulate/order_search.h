#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// How good an order is: first that it keeps a limit, then its time.
struct OrderScore {
  std::int64_t excess_bytes = 0;
  Nanoseconds time_ns = 0;

  auto operator<=>(const OrderScore&) const = default;
};

using OrderRule = std::function<OrderScore(std::span<const std::int32_t> order)>;

struct FoundOrder {
  std::vector<std::int32_t> order = {};  // what each slot runs
  OrderScore score;
  bool is_best = false;  // proved: it meets the lower bound, or all orders were tried
};

// Searches for the order of things with the least score, never worse than 0, 1, 2, .. and than
// small_ends(sizes). `lower_bound_ns` holds for every order. Tries all orders of up to six things
// if the budget holds them; otherwise the number of calls of the rule is at most max_evaluations,
// but at least two. Equal inputs give equal orders on every machine.
[[nodiscard]] FoundOrder find_order(std::span<const Nanoseconds> sizes, Nanoseconds lower_bound_ns,
                                    std::int64_t max_evaluations, const OrderRule& rule);

}  // namespace isochron
