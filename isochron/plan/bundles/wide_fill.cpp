#include "isochron/plan/bundles/wide_fill.h"

#include <algorithm>
#include <limits>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr Nanoseconds num_short = 3;  // groups of which this many fit in are cut without much harm

}  // namespace

WideFill::WideFill(const BundleTable& table, std::int32_t level, Nanoseconds latest)
    : fixed_(latest), short_(latest / num_short) {
  for (std::int32_t l = level + 1; l < table.num_levels(); ++l) {
    fixed_ = std::min(fixed_, table.fixed(l));
    const double blocks = static_cast<double>(table.size(l)) / table.size(level);
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      const Nanoseconds time = table.time(l, bundle);
      if (!table.fits(l, bundle) || time > latest) continue;
      by_cost_.push_back({.time = time,
                          .cost = std::max<Nanoseconds>(1, table.use(l, bundle).cost),
                          .bundle = bundle,
                          .part = 1 / blocks});
    }
  }
  for (const Group& group : by_cost_) {
    if (group.time > short_) by_time_.push_back(group);
  }
  const auto sort_by = [](std::vector<Group>& groups, Nanoseconds Group::*key) {
    std::stable_sort(groups.begin(), groups.end(), [key](const Group& a, const Group& b) {
      return a.*key != b.*key ? a.*key < b.*key : a.part > b.part;
    });
  };
  sort_by(by_time_, &Group::time);
  sort_by(by_cost_, &Group::cost);
}

void WideFill::set_prices(std::span<const double> prices, BundleId beside, double beside_rate) {
  longest_.clear();
  rest_.clear();
  if (by_time_.size() < by_cost_.size()) longest_.push_back({.time = fixed_});  // none
  double dearest = 0;
  for (const Group& group : by_time_) {
    const double worth = group.part * prices[static_cast<std::size_t>(group.bundle)];
    if (worth <= dearest) continue;
    dearest = worth;
    longest_.push_back(
        {.time = group.time, .worth = worth, .part = {.bundle = group.bundle, .part = group.part}});
  }
  // By time: what it is worth, and how much of the bundle that is.
  highest_rate_ = 0;
  if (beside_rate > 0) {
    highest_rate_ = beside_rate;
    const double part = beside_rate / prices[static_cast<std::size_t>(beside)];
    rest_.push_back({.time = 0, .worth = beside_rate, .part = {.bundle = beside, .part = part}});
  }
  for (const Group& group : by_cost_) {
    const double part = group.part / static_cast<double>(group.cost);
    const double rate = part * prices[static_cast<std::size_t>(group.bundle)];
    if (rate <= highest_rate_) continue;
    highest_rate_ = rate;
    rest_.push_back(
        {.time = group.cost, .worth = rate, .part = {.bundle = group.bundle, .part = part}});
  }
  for (Priced& longest : longest_) {
    longest.above_rate = longest.worth - highest_rate_ * static_cast<double>(longest.time);
  }
  std::stable_sort(longest_.begin(), longest_.end(),
                   [](const Priced& a, const Priced& b) { return a.above_rate > b.above_rate; });
  most_above_rate_ = longest_.empty() ? -infinite : longest_.front().above_rate;
}

// What follows the longest is no longer.
Nanoseconds WideFill::most_after(const Priced& longest) const {
  return std::max(longest.time, short_);
}

std::optional<WideFill::Content> WideFill::find_dearest(Nanoseconds time, double floor) const {
  std::optional<Content> best;
  const double at_rate = highest_rate_ * static_cast<double>(time);
  for (const Priced& longest : longest_) {
    if (at_rate + longest.above_rate <= floor) break;
    if (longest.time > time) continue;
    const Nanoseconds left = time - longest.time;
    const auto next =
        std::upper_bound(rest_.begin(), rest_.end(), std::min(left, most_after(longest)),
                         [](Nanoseconds room, const Priced& each) { return room < each.time; });
    const Priced rest = next == rest_.begin() ? Priced{} : *(next - 1);
    const auto filled = static_cast<double>(left);
    const double worth = longest.worth + rest.worth * filled;
    if (worth <= floor) continue;
    floor = worth;
    best = Content{.worth = worth,
                   .longest = longest.part,
                   .rest = {.bundle = rest.part.bundle, .part = rest.part.part * filled}};
  }
  return best;
}

double WideFill::time_for(double worth, double limit) const {
  for (const Priced& longest : longest_) {
    if (highest_rate_ * limit + longest.above_rate <= worth) break;
    const auto time = static_cast<double>(longest.time);
    const double missing = worth - longest.worth;
    if (missing <= 0) limit = std::min(limit, time);
    for (const Priced& rest : rest_) {
      if (time + static_cast<double>(rest.time) >= limit || rest.time > most_after(longest)) break;
      limit =
          std::min(limit, time + std::max(static_cast<double>(rest.time), missing / rest.worth));
    }
  }
  return limit;
}

double WideFill::most_of(BundleId bundle, Nanoseconds time) const {
  double most = 0;
  for (const Group& group : by_cost_) {
    if (group.bundle == bundle && group.time <= time) most = std::max(most, group.part);
  }
  return most;
}

}  // namespace isochron
