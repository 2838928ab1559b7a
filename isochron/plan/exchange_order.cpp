// What a micro-batch pays for an exchange is its latency, and for each sequence the traffic of its
// tokens, rounded. So the exchange with the least of both is the cheapest for every micro-batch.

#include "isochron/plan/exchange_order.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace isochron {

namespace {

// Factors that roundings do not reach.
constexpr double clearly = 1 + 1e-9;
constexpr double slightly = 1 + 1e-12;

struct Pace {
  double latency_us = 0;
  double traffic = 0;  // of a token
};

bool has_ordered_links(const ContextCost& context) {
  for (std::size_t i = 1; i < context.links.size(); ++i) {
    const ContextLink& wider = context.links[i];
    const ContextLink& link = context.links[i - 1];
    if (wider.gb_per_s > link.gb_per_s || wider.latency_us < link.latency_us) return false;
  }
  return true;
}

// Whether all exchanges cut the ranks into the same blocks.
bool has_same_blocks(const std::vector<ContextCost>& exchanges) {
  return std::all_of(exchanges.begin(), exchanges.end(), [&](const ContextCost& context) {
    return std::equal(
        context.links.begin(), context.links.end(), exchanges.front().links.begin(),
        exchanges.front().links.end(),
        [](const ContextLink& a, const ContextLink& b) { return a.max_ranks == b.max_ranks; });
  });
}

// The pace of the cheapest exchange for groups of a size on the link of this place in the lists;
// none if which one it is depends on what they hold.
std::optional<Pace> cheapest_pace(const CostModel& cost, std::int32_t size, std::size_t place) {
  std::vector<Pace> paces;
  for (const ContextCost& context : cost.context) {
    if (context.divides != 0 && context.divides % size != 0) continue;
    if (context.links.empty()) {
      paces.push_back({});
    } else if (place < context.links.size()) {
      const ContextLink& link = context.links[place];
      paces.push_back(
          {.latency_us = link.latency_us, .traffic = token_traffic(context, link, size)});
    }
  }
  for (const Pace& pace : paces) {
    const bool is_cheapest = std::all_of(paces.begin(), paces.end(), [&](const Pace& other) {
      return &pace == &other ||
             (pace.latency_us <= other.latency_us && pace.traffic * clearly <= other.traffic);
    });
    if (is_cheapest) return pace;
  }
  return std::nullopt;
}

}  // namespace

ExchangeOrder exchange_order(const CostModel& cost, std::span<const std::int32_t> sizes) {
  ExchangeOrder order;
  for (const ContextCost& context : cost.context) {
    order.has_ordered_links = order.has_ordered_links && has_ordered_links(context);
  }
  order.has_one_exchange = cost.context.empty() || has_same_blocks(cost.context);
  std::vector<Pace> closest;  // of each size, on the first ranks
  for (const std::int32_t size : sizes) {
    if (size == 1) {
      closest.push_back({});
      continue;
    }
    const auto& links = cost.context.front().links;
    std::size_t place = 0;
    while (place < links.size() && links[place].max_ranks < size) ++place;
    closest.push_back(cheapest_pace(cost, size, place).value_or(Pace{}));
    for (; place < std::max<std::size_t>(1, links.size()) && order.has_one_exchange; ++place) {
      order.has_one_exchange = cheapest_pace(cost, size, place).has_value();
    }
    if (!order.has_one_exchange) break;
  }
  order.grows_from.assign(sizes.empty() ? 1 : static_cast<std::size_t>(sizes.back()) + 1, false);
  if (!order.has_ordered_links || !order.has_one_exchange) return order;
  double least_area = std::numeric_limits<double>::infinity();  // of all that are larger
  double least_latency = least_area;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const double area = closest[i].traffic * sizes[i];
    order.grows_from[static_cast<std::size_t>(sizes[i])] =
        area <= least_area * slightly && closest[i].latency_us <= least_latency;
    least_area = std::min(least_area, area);
    least_latency = std::min(least_latency, closest[i].latency_us);
  }
  return order;
}

}  // namespace isochron
