// By the two that cost most: the third one costs at most what they leave, and of all that do, the
// dearest says whether any is worth what is missing.

#include "isochron/plan/bundles/set_list.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

SetList::SetList(const BundleTable& table, std::int32_t level, double num_narrow,
                 std::span<const BundleId> bundles, std::span<const double> prices,
                 std::span<const double> fluid, Nanoseconds time)
    : table_(table),
      level_(level),
      num_narrow_(static_cast<float>(num_narrow)),
      time_(time),
      most_worth_({-infinite}),
      spots_(fluid.size(), fluid.size()) {
  const auto room = static_cast<double>(time - table.fixed(level));
  for (const BundleId bundle : bundles) {
    if (!table.fits(level, bundle)) continue;
    const auto b = static_cast<std::size_t>(bundle);
    const BlockUse& use = table.use(level, bundle);
    const double cost = static_cast<double>(use.cost) / room;
    if (cost > 1) continue;
    const double worth = std::min(prices[b] / table.size(level), fluid[b] / num_narrow);
    items_.push_back({.cost = cost,
                      .worth = worth,
                      .use = use,
                      .fluid = static_cast<float>(fluid[b]),
                      .bundle = bundle});
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return std::pair(a.cost, a.bundle) < std::pair(b.cost, b.bundle);
  });
  for (std::size_t i = 0; i < items_.size(); ++i) {
    most_worth_.push_back(std::max(most_worth_.back(), items_[i].worth));
    spots_[static_cast<std::size_t>(items_[i].bundle)] = i;
  }
}

PricedSet SetList::together(std::span<const Item* const> members) const {
  PricedSet set{.groups = num_narrow_};
  for (const Item* item : members) {
    set.bundles[set.count++] = item->bundle;
    set.worth += static_cast<float>(item->worth);
    set.fluid += item->fluid;
  }
  return set;
}

PricedSet SetList::set_of(std::span<const BundleId> bundles) const {
  std::array<const Item*, PricedSet::max_members> items = {};
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    items[i] = &items_[spots_[static_cast<std::size_t>(bundles[i])]];
  }
  return together(std::span(items).first(bundles.size()));
}

void SetList::add_in_time(std::span<const Item* const> members,
                          std::vector<PricedSet>& sets) const {
  BlockUse all;
  for (const Item* item : members) {
    all.cost += item->use.cost;
    all.tokens += item->use.tokens;
    all.sequences += item->use.sequences;
  }
  if (table_.time(level_, all) <= time_) sets.push_back(together(members));
}

void SetList::add(BundleId bundle, std::size_t end, double least, double most,
                  std::vector<PricedSet>& sets) const {
  const Item& first = items_[spots_[static_cast<std::size_t>(bundle)]];
  const auto is_asked = [&](double worth) { return worth >= least && worth < most; };
  std::array<const Item*, PricedSet::max_members> members = {&first};
  if (is_asked(first.worth)) add_in_time(std::span(members).first(1), sets);
  const double beside = 1 - first.cost;
  const auto too_dear =
      std::partition_point(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(end),
                           [&](const Item& item) { return item.cost <= beside; });
  std::size_t num_third = 0;  // that cost at most what two leave
  for (auto j = static_cast<std::size_t>(too_dear - items_.begin()); j-- > 0;) {
    // The third one costs no more than the second, nor does what follows.
    if (first.worth + 2 * most_worth_[j + 1] < least) break;
    const Item& second = items_[j];
    if (second.bundle == bundle) continue;
    const double left = beside - second.cost;
    const double worth = first.worth + second.worth;
    members[1] = &second;
    if (is_asked(worth)) add_in_time(std::span(members).first(2), sets);
    while (num_third < j && items_[num_third].cost <= left) ++num_third;
    for (std::size_t k = std::min(num_third, j); worth + most_worth_[k] >= least; --k) {
      const Item& third = items_[k - 1];
      if (third.bundle == bundle || !is_asked(worth + third.worth)) continue;
      members[2] = &third;
      add_in_time(members, sets);
    }
  }
}

void SetList::add_of_dearest(BundleId bundle, double least, std::vector<PricedSet>& sets) const {
  add(bundle, spots_[static_cast<std::size_t>(bundle)], least, infinite, sets);
}

void SetList::add_with(BundleId bundle, double least, double most,
                       std::vector<PricedSet>& sets) const {
  add(bundle, items_.size(), least, most, sets);
}

}  // namespace isochron
