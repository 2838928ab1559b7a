#include "isochron/core/order.h"

#include <algorithm>
#include <numeric>

namespace isochron {

std::vector<std::size_t> small_ends(std::span<const Nanoseconds> costs) {
  std::vector<std::size_t> ascending(costs.size());
  std::iota(ascending.begin(), ascending.end(), std::size_t{0});
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  std::vector<std::size_t> order;
  order.reserve(costs.size());
  for (std::size_t i = 0; i < ascending.size(); i += 2) order.push_back(ascending[i]);
  for (std::size_t i = ascending.size() / 2; i-- > 0;) order.push_back(ascending[2 * i + 1]);
  return order;
}

}  // namespace isochron
