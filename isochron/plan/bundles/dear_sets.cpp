// Depth first over bundles from the highest price by area down.
//
// In a block that is done within T every rank has at least one micro-batch, so the areas of its
// bundles add up to less than its ranks times the rest. A set is given up as soon as it would not
// be worth the limit even if all that is left of this were filled at the price of the next bundle,
// or at the best of wide groups. Only sets that may be worth the limit are packed, and with more in
// it a set that takes too long does so too.

#include "isochron/plan/bundles/dear_sets.h"

#include <algorithm>
#include <utility>

namespace isochron {

DearSets::DearSets(const BundleTable& table, std::int32_t level, Nanoseconds latest)
    : table_(table),
      level_(level),
      latest_(latest),
      packer_(table, level),
      fixed_(table.fixed(0)),
      areas_(least_areas(table, level, latest)) {
  for (std::int32_t l = 0; l <= level; ++l) fixed_ = std::min(fixed_, table.fixed(l));
  const auto takes_no_less = [&](BundleId large, BundleId other) {
    for (std::int32_t l = 0; l <= level; ++l) {
      if (!table.fits(l, large)) continue;
      const BlockUse& a = table.use(l, large);
      const BlockUse& b = table.use(l, other);
      if (!table.fits(l, other) || a.cost < b.cost || a.tokens < b.tokens ||
          a.sequences < b.sequences) {
        return false;
      }
    }
    return true;
  };
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    Mask larger = 0;
    for (BundleId large = 0; large < table.num_bundles(); ++large) {
      if (takes_no_less(large, bundle)) larger |= Mask{1} << large;
    }
    no_less_.push_back(larger);
  }
}

std::vector<BundleSet> DearSets::first_sets() {
  const double room = static_cast<double>(latest_) * table_.size(level_);
  std::vector<std::pair<double, BundleId>> order;
  for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
    const double area = areas_[static_cast<std::size_t>(bundle)];
    if (area <= room) order.emplace_back(-area, bundle);
  }
  std::sort(order.begin(), order.end());
  std::vector<BundleSet> sets;
  for (std::size_t i = 0; i < order.size(); ++i) {
    BundleSet alone{.bundles = {order[i].second}, .count = 1};
    alone.time = packer_.time(alone.ids(), latest_);
    if (alone.time < 0) continue;
    sets.push_back(alone);
    for (const std::size_t first : {std::size_t{0}, i + 1}) {
      BundleSet set = alone;
      double left = room + order[i].first;
      for (std::size_t j = first; j < order.size() && set.count < BundleSet::max_count; ++j) {
        if (j == i || left + order[j].first < 0) continue;
        set.bundles[set.count++] = order[j].second;
        const Nanoseconds time = packer_.time(set.ids(), latest_);
        if (time < 0) {
          --set.count;
        } else {
          set.time = time;
          left += order[j].first;
        }
      }
      if (set.count > 1) sets.push_back(set);
    }
  }
  return sets;
}

std::optional<std::vector<BundleSet>> DearSets::find(std::span<const double> prices,
                                                     const WideFill& wide, Nanoseconds time,
                                                     double limit, std::int64_t& work) {
  constexpr double rounding = 1 + 1e-9;  // more than all of sums
  wide_ = &wide;
  time_ = time;
  room_ = static_cast<double>(time - fixed_) * table_.size(level_) * rounding;
  wide_rate_ = wide.highest_rate() / table_.size(level_);
  is_complete_ = true;
  work_ = work;
  by_rate_.clear();
  for (std::size_t i = 0; i < areas_.size(); ++i) {
    if (areas_[i] > room_ || prices[i] <= 0) continue;
    const double area = std::max(1.0, areas_[i]);
    by_rate_.push_back({.rate = prices[i] / area,
                        .area = area,
                        .price = prices[i],
                        .bundle = static_cast<BundleId>(i)});
  }
  std::stable_sort(by_rate_.begin(), by_rate_.end(),
                   [](const Priced& a, const Priced& b) { return a.rate > b.rate; });
  std::vector<BundleSet> found;
  for (std::size_t i = 0; i < by_rate_.size() && is_complete_; ++i) {
    limit_ = limit;
    best_ = {};
    set_ = {};
    members_ = 0;
    if (std::max(by_rate_[i].rate, wide_rate_) * room_ < limit_) break;
    extend(i, 0, 0, 0);
    if (best_.count > 0) found.push_back(best_);
  }
  work = work_;
  if (!is_complete_) return std::nullopt;
  return found;
}

// All sets that have this bundle, and others of no higher rate, beside those at hand; none of those
// that are `late` beside these. False if already these take too long.
bool DearSets::extend(std::size_t i, double area, double worth, Mask late) {
  const Priced& added = by_rate_[i];
  if (--work_ <= 0 || set_.count == BundleSet::max_count) {
    is_complete_ = false;
    return true;
  }
  area += added.area;
  worth += added.price;
  set_.bundles[set_.count++] = added.bundle;
  members_ |= Mask{1} << added.bundle;
  const bool is_in_time = consider(area, worth);
  for (std::size_t j = i + 1; j < by_rate_.size() && is_in_time && is_complete_; ++j) {
    const Priced& next = by_rate_[j];
    if (worth + std::max(next.rate, wide_rate_) * (room_ - area) < limit_) break;
    if (area + next.area > room_ || (late >> next.bundle & 1) != 0) continue;
    // What takes no less is too long as well.
    if (!extend(j, area, worth, late)) late |= no_less_[static_cast<std::size_t>(next.bundle)];
  }
  members_ ^= Mask{1} << added.bundle;
  --set_.count;
  return is_in_time;
}

// Keeps the set at hand if it is the best. False if it takes too long, as far as that matters.
bool DearSets::consider(double area, double worth) {
  const double missing = limit_ - worth;
  const auto least = fixed_ + static_cast<Nanoseconds>(area / table_.size(level_) * (1 - 1e-9));
  if (missing > 0 && wide_->most_worth(time_ - least) < missing) return true;
  set_.time = time_of_set();
  if (set_.time < 0 || set_.time > time_) return false;
  double all = worth;
  if (const auto beside = wide_->find_dearest(time_ - set_.time, 0)) all += beside->worth;
  if (all < limit_) return true;
  limit_ = all;
  best_ = set_;
  return true;
}

Nanoseconds DearSets::time_of_set() {
  const auto [known, is_new] = times_.try_emplace(members_, 0);
  if (is_new) {
    work_ -= std::int64_t{8} << set_.count;  // about as long as so many looks
    known->second = packer_.time(set_.ids(), latest_);
  }
  return known->second;
}

}  // namespace isochron
