// Of every `smallest` ranks take the last. A group of c ranks has at least c / smallest of them,
// rounded down, and one of them works at least as long as their mean. Of the fixed cost of its
// micro-batch an item counts the part of the capacity that it fills: those that share one fill no
// more than all of it.

#include <algorithm>
#include <limits>

#include "isochron/plan/bounds/bounds.h"

namespace isochron {

namespace {

constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

// `fixed_of` says what an item counts of the fixed cost on groups of a size.
template <class FixedOf>
Nanoseconds mean_of_taken(const Problem& problem, FixedOf fixed_of) {
  const std::int32_t smallest = problem.sizes().front();
  if (problem.has_speeds() || problem.num_ranks() % smallest == 0) return 0;
  double sum = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::int32_t size : problem.sizes()) {
      if (!problem.item_fits(size, item)) continue;
      const auto cost = static_cast<double>(problem.least_item_cost(size, item));
      least = std::min(least, (cost + fixed_of(size, item)) * (size / smallest));
    }
    if (least < std::numeric_limits<double>::infinity()) sum += least;
  }
  const std::int32_t num_taken = problem.num_ranks() / smallest;
  return static_cast<Nanoseconds>(sum * (1 - slack) / num_taken);
}

}  // namespace

Nanoseconds left_over_work(const Problem& problem) {
  return mean_of_taken(problem, [](std::int32_t, ItemId) { return 0.0; });
}

Nanoseconds left_over_bound(const Problem& problem) {
  return mean_of_taken(problem, [&](std::int32_t size, ItemId item) {
    const double filled = static_cast<double>(problem.tokens(size, item)) /
                          (static_cast<double>(problem.capacity()) * size);
    return static_cast<double>(problem.least_fixed(size)) * std::min(1.0, filled);
  });
}

}  // namespace isochron
