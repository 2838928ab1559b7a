// The bound by covers (cover_bound.cpp) with wider groups that are whole: what a block holds is a
// set and wider groups in the time that is left, which a knapsack finds for all times at once.

#include "isochron/plan/bundles/knapsack_cover.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/bundles/priced_cover.h"
#include "isochron/plan/bundles/wide_knapsack.h"

namespace isochron {

namespace {

class BlockContents {
 public:
  BlockContents(const BundleTable& table, std::int32_t level, const std::vector<BundleSet>& sets,
                Nanoseconds latest)
      : sets_(sets), wide_(table, level, latest) {}

  double most_of(BundleId bundle, Nanoseconds time) const {
    const bool is_set = std::any_of(sets_.begin(), sets_.end(), [&](const BundleSet& set) {
      return set.count == 1 && set.bundles[0] == bundle && set.time <= time;
    });
    return is_set ? 1 : wide_.most_of(bundle, time);
  }

  void set_prices(std::span<const double> prices) {
    prices_ = prices;
    wide_.set_prices(prices);
  }

  bool are_below(double worth, Nanoseconds time) const {
    return wide_.most_worth(time) < worth &&
           std::all_of(sets_.begin(), sets_.end(), [&](const BundleSet& set) {
             return set.time > time || worth_of(set, time) < worth;
           });
  }

  void add_dearest(Nanoseconds time, std::vector<CoverContent>& found) const {
    constexpr std::size_t most = 24;
    std::vector<std::pair<double, std::size_t>> dearest = {{-wide_.most_worth(time), sets_.size()}};
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].time <= time) dearest.emplace_back(-worth_of(sets_[i], time), i);
    }
    const auto last = dearest.begin() + static_cast<std::ptrdiff_t>(std::min(most, dearest.size()));
    std::partial_sort(dearest.begin(), last, dearest.end());
    dearest.erase(last, dearest.end());
    for (const auto& [worth, i] : dearest) {
      const BundleSet set = i < sets_.size() ? sets_[i] : BundleSet{};
      CoverContent& content = found.emplace_back();
      for (const BundleId bundle : set.ids()) content.push_back({.bundle = bundle, .part = 1});
      wide_.add_dearest(time - set.time, content);
    }
  }

 private:
  double worth_of(const BundleSet& set, Nanoseconds time) const {
    double worth = wide_.most_worth(time - set.time);
    for (const BundleId bundle : set.ids()) worth += prices_[static_cast<std::size_t>(bundle)];
    return worth;
  }

  const std::vector<BundleSet>& sets_;
  WideKnapsack wide_;
  std::span<const double> prices_;
};

}  // namespace

Nanoseconds knapsack_cover_bound(const BundleTable& table, std::int32_t num_ranks,
                                 std::int32_t level, const std::vector<BundleSet>& sets,
                                 Nanoseconds low, Nanoseconds high) {
  PricedCover cover(BlockContents(table, level, sets, high), table.num_bundles(),
                    num_ranks / table.size(level));
  constexpr int max_tries = 4;
  return raised_by(cover, low, high, max_tries);
}

}  // namespace isochron
