#pragma once

#include <compare>
#include <cstdint>
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

// Judges orders, and counts what that takes.
class OrderRule {
 public:
  virtual ~OrderRule() = default;
  [[nodiscard]] virtual OrderScore score(std::span<const std::int32_t> order) = 0;
  [[nodiscard]] virtual std::int64_t work() const = 0;  // so far
};

struct FoundOrder {
  std::vector<std::int32_t> order = {};  // what each slot runs
  OrderScore score;
  bool is_best = false;  // proved: it meets the lower bound, or all orders were tried
};

struct OrderQuestion {
  std::span<const Nanoseconds> sizes;  // of the things to order: roughly what each takes
  Nanoseconds lower_bound_ns = 0;      // no order takes less
  // Of the rule. About as much, but the input and small_ends() are always judged.
  std::int64_t max_work = 0;
  std::span<const std::int32_t> start = {};  // one more order to begin with, if it is the best
};

// Searches for the order of things with the least score, never worse than 0, 1, 2, .. and than
// small_ends(sizes). Tries all orders of up to six things if the budget holds them. Gives up before
// the end of the budget when it finds no more. Equal inputs give equal orders on every machine.
[[nodiscard]] FoundOrder find_order(const OrderQuestion& question, OrderRule& rule);

// An order in which any `width` consecutive things have about the same sum: the largest come first
// in every width-th place, the next largest behind them, and so on, in turn from either end.
[[nodiscard]] std::vector<std::int32_t> spread_order(std::span<const double> sizes,
                                                     std::size_t width);

}  // namespace isochron
