#include "isochron/plan/bounds/leaders.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "isochron/core/radix_sort.h"

namespace isochron {

namespace {

// Sizes of a leader, and of wider ones that are taken for one.
constexpr std::size_t num_exact = 24;
constexpr std::size_t num_joined = 8;

}  // namespace

Leaders::Leaders(const Problem& problem, const SizeRules& rules, std::span<const double> prices)
    : problem_(problem), rules_(rules), leads_(prices.size()) {
  const auto tokens_of = [&](BundleId bundle) {
    return problem.tokens(1, problem.items_of(bundle).front());
  };
  std::vector<std::uint64_t> keys(prices.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = ~static_cast<std::uint64_t>(tokens_of(static_cast<BundleId>(i)));
  }
  order_ = ascending_positions(std::move(keys));
  for (const BundleId bundle : order_) {
    price_.push_back(prices[static_cast<std::size_t>(bundle)]);
    tokens_.push_back(static_cast<double>(tokens_of(bundle)));
  }
  density_.resize(order_.size());
  double most = 0;
  for (std::size_t i = order_.size(); i-- > 0;) {
    most = std::max(most, price_[i] / tokens_[i]);
    density_[i] = most;
  }
}

double Leaders::efficiency(std::size_t place) {
  if (efficiency_.empty()) find_efficiencies();
  return efficiency_[place];
}

// Wider groups take no less of all ranks, so some sizes speak for those that follow them. What
// joins is no longer than the leader, and both keep the capacity.
void Leaders::find_efficiencies() {
  constexpr double step = 1.3;
  const auto sizes = problem_.sizes();
  efficiency_.assign(sizes.size(), 1);
  const auto& context = problem_.model().context;
  if (context.empty() || context.front().links.empty()) return;
  const double all = problem_.num_ranks();
  std::size_t place = 0;
  while (place < sizes.size() && sizes[place] <= context.front().links.front().max_ranks) ++place;
  while (place < sizes.size()) {
    const std::int32_t size = sizes[place];
    const std::size_t first = place;
    while (place < sizes.size() && sizes[place] <= step * size) ++place;
    if (!problem_.grows_from(size)) continue;
    const double room = sizes[place - 1] * static_cast<double>(problem_.capacity()) / 2;
    double most = 0;
    for (std::size_t i = density_.size(); i-- > 0 && tokens_[i] <= room && most < 1;) {
      // Both costs are rounded, by half a nanosecond.
      const double area = (static_cast<double>(problem_.least_cost(size, order_[i])) - 0.5) * size -
                          0.5 * sizes[place - 1];
      most = area <= 0 ? 1 : std::max(most, price_[i] * all / area);
    }
    std::fill(efficiency_.begin() + static_cast<std::ptrdiff_t>(first),
              efficiency_.begin() + static_cast<std::ptrdiff_t>(place), std::min(1.0, most));
  }
}

// The best price of a token of what follows a leader and has at most so many.
double Leaders::density_within(std::size_t leader, double tokens) const {
  const auto first =
      std::partition_point(tokens_.begin() + static_cast<std::ptrdiff_t>(leader), tokens_.end(),
                           [&](double other) { return other > tokens; });
  return first == tokens_.end() ? 0 : density_[static_cast<std::size_t>(first - tokens_.begin())];
}

// Sizes as one: a wider group takes no less of all ranks together, but for half a nanosecond by
// which costs are rounded, and no less latency. What it gains over a rent it gains by rank.
Lead Leaders::widest(std::size_t i, std::size_t first, std::size_t last) const {
  const std::int32_t size = problem_.sizes()[first];
  const double all = problem_.num_ranks();
  const double work = (static_cast<double>(problem_.least_cost(size, order_[i])) - 1) * size;
  const double ranks = problem_.sizes()[last];
  return {.place = first,
          .last = last,
          .ranks = ranks,
          .tokens = tokens_[i],
          .cost = work / ranks - 1,
          .fixed = static_cast<double>(problem_.least_fixed(size)),
          .waste = std::max(0.0, work / all - price_[i] - 1),
          .worth = std::numeric_limits<double>::infinity()};
}

std::span<const Lead> Leaders::leads(std::size_t i) {
  std::vector<Lead>& leads = leads_[i];
  if (!leads.empty()) return leads;
  const BundleId bundle = order_[i];
  const ItemId item = problem_.items_of(bundle).front();
  const auto capacity = static_cast<double>(problem_.capacity());
  const double all = problem_.num_ranks();
  for (std::size_t place = 0; place < problem_.sizes().size(); ++place) {
    const std::int32_t size = problem_.sizes()[place];
    if (!problem_.fits(size, bundle)) continue;
    if (leads.size() >= num_exact && problem_.grows_from(size)) {
      const std::size_t last = std::min(place + num_joined, problem_.sizes().size()) - 1;
      leads.push_back(widest(i, place, last));
      place = last;
      continue;
    }
    const Tokens tokens = problem_.tokens(size, item);
    const double share = rules_[static_cast<std::size_t>(size)](tokens, problem_.capacity() * size);
    Lead lead{.place = place,
              .last = place,
              .ranks = static_cast<double>(size),
              .tokens = static_cast<double>(tokens),
              .cost = static_cast<double>(problem_.least_cost(size, bundle)),
              .fixed = static_cast<double>(problem_.least_fixed(size))};
    const double area = lead.ranks * (lead.cost + lead.fixed * share) / all;
    lead.waste = std::max(0.0, area - price_[i]);
    const double room = lead.ranks * capacity - lead.tokens;
    lead.worth = price_[i] + room * density_within(i, room);
    leads.push_back(lead);
  }
  return leads;
}

double Leaders::value(const Lead& lead, double time) const {
  return std::min(lead.worth, lead.ranks * time / problem_.num_ranks() - lead.waste);
}

}  // namespace isochron
