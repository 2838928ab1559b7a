// Groups of one size, slot by slot.
//
// Of bundles above 1/(p + 1) of the capacity at most p share a group, so with G groups a slot the
// bundle number p * G * (k - 1) + 1, longest first, makes k slots last as long as it does. Their
// times are one bound. In slots so long most leaders leave time that tokens cannot fill: whoever
// leads groups where, the slots hold no more than if the most worthy G leaders were in the longest
// slot, the next G in the second, and so on. What that leaves over comes on top of all prices.

#include <algorithm>
#include <functional>

#include "isochron/plan/bounds/slot_prices.h"

namespace isochron {

namespace {

// What the longest slot takes at least, the second, and so on.
std::vector<double> least_times(const Problem& problem, Leaders& leaders, std::size_t num_groups) {
  constexpr std::size_t max_sharing = 6;
  const double capacity =
      static_cast<double>(problem.capacity()) * static_cast<double>(problem.sizes().front());
  std::vector<double> times;
  for (std::size_t sharing = 1; sharing <= max_sharing; ++sharing) {
    std::vector<double> large;
    for (std::size_t i = 0; i < leaders.size(); ++i) {
      const Lead& lead = leaders.leads(i).front();
      if (lead.tokens * static_cast<double>(sharing + 1) > capacity) large.push_back(lead.time());
    }
    std::sort(large.begin(), large.end(), std::greater<>());
    const std::size_t step = sharing * num_groups;
    for (std::size_t k = 0; k * step < large.size(); ++k) {
      if (k == times.size()) times.push_back(0);
      times[k] = std::max(times[k], large[k * step]);
    }
  }
  return times;
}

}  // namespace

double equal_groups_bound(const Problem& problem, Leaders& leaders) {
  const auto num_groups = static_cast<std::size_t>(problem.num_ranks() / problem.sizes().front());
  const std::vector<double> times = least_times(problem, leaders, num_groups);
  std::vector<double> worth;
  double prices = 0;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    prices += leaders.price(i);
    worth.push_back(leaders.leads(i).front().worth);
  }
  std::sort(worth.begin(), worth.end(), std::greater<>());
  double sum = 0;
  double left = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    sum += times[k];
    left += times[k];
    const double group = times[k] * problem.sizes().front() / problem.num_ranks();
    for (std::size_t i = k * num_groups; i < std::min(worth.size(), (k + 1) * num_groups); ++i) {
      left -= std::min(worth[i], group);
    }
  }
  return std::max(sum, prices + left);
}

}  // namespace isochron
