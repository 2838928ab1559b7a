// Which bundles share a rank: a bound by prices.
//
// Give every bundle a price. In a step of length T each rank runs a content that takes no longer,
// and all contents together are worth the sum of the prices: where the dearest content is worth
// less than the mean over the ranks, there is no such step. The work of bundles as prices gives the
// bound of the area; better ones make bundles cheap that fill ranks well, and dear those that leave
// holes or need a wide group. Contents that are worth too much at the prices at hand are looked up,
// prices are improved over all that are known, but only a little, since the others move too, and so
// on. What is proved is proved in whole numbers by a complete look.

#include "isochron/plan/bundles/rank_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "isochron/plan/bundles/content_prices.h"
#include "isochron/plan/bundles/rank_contents.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// A price of 1 is the mean worth of what a rank runs.
constexpr double unit = 1 << 21;          // of whole numbers that it is counted in
constexpr double max_reach = 0.001;       // of a price in one go, upwards
constexpr double first_distance = 0.003;  // contents that are looked up are worth so little less
constexpr double next_distance = 0.001;
// Holes are seldom more, however far the step is that is known.
constexpr double max_first_rise = 0.006;
constexpr double max_next_rise = 0.002;
constexpr double near_enough = 1.004;      // the dearest content, to look at an earlier target
constexpr std::int32_t most_of_each = 10;  // contents with one bundle

class RankBound {
 public:
  RankBound(const BundleTable& table, std::int32_t num_ranks, Nanoseconds low, Nanoseconds high)
      : table_(table),
        num_ranks_(num_ranks),
        low_(low),
        high_(high),
        max_work_(700'000 + 4'000 * std::int64_t{table.num_bundles()}),
        contents_(table),
        pool_(static_cast<std::size_t>(table.num_bundles())) {}

  Nanoseconds raised() {
    constexpr int max_rounds = 60;
    constexpr int max_tries = 5;
    constexpr int num_steps = 20;
    aim(std::min(0.4 * gap(), max_first_rise * static_cast<double>(low_)));
    prices_ = first_prices();
    int num_tries = 0;
    for (int round = 0; round < max_rounds && low_ < high_ && work() < max_work_; ++round) {
      normalize();
      if (!look()) break;
      if (is_excluded_) {
        low_ = target_ + 1;
        // As much later as the dearest content leaves room, and a little more.
        aim(std::min(0.1 * gap(), max_next_rise * static_cast<double>(low_)) +
            (1 - dearest_) * static_cast<double>(target_));
        reach_ = max_reach;
        num_tries = 0;
        // The prices are right for more than is asked: what is new is looked up first.
        continue;
      }
      if (dearest_ < least_dearest_) {
        least_dearest_ = dearest_;
        best_ = prices_;
      } else {
        reach_ /= 2;
      }
      if (++num_tries == max_tries) {
        aim(0.6 * static_cast<double>(target_ - low_));
        reach_ = max_reach;
        num_tries = 0;
      }
      pool_.forget_cheap(best_, reach_);
      prices_ = pool_.improved(best_, reach_, num_steps);
    }
    if (least_dearest_ < near_enough) look_earlier();
    return low_;
  }

 private:
  // The best prices for the last target may do for one before it.
  void look_earlier() {
    prices_ = best_;
    max_work_ = work() + max_work_ / 8;
    const auto rise = static_cast<double>(target_ - low_);
    for (const double part : {0.7, 0.4}) {
      target_ = low_ + static_cast<Nanoseconds>(part * rise);
      if (!look()) return;
      if (!is_excluded_) continue;
      low_ = target_ + 1;
      return;
    }
  }

  double gap() const { return static_cast<double>(high_ - low_); }

  void aim(double above) {
    target_ = std::min(high_ - 1, low_ + static_cast<Nanoseconds>(above));
    least_dearest_ = infinite;
  }

  // The least area of each, moved by about as much as the bound is to rise: bundles of less than
  // half a rank fill what others leave and are cheaper than that, larger ones leave it and are
  // dearer, and what no rank runs alone pays for groups on several.
  std::vector<double> first_prices() const {
    std::vector<double> prices;
    double sum = 0;
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      double least = infinite;
      for (std::int32_t level = 0; level < table_.num_levels(); ++level) {
        if (!table_.fits(level, bundle) || table_.time(level, bundle) > target_) continue;
        const auto cost = static_cast<double>(table_.use(level, bundle).cost);
        least = std::min(least, cost * table_.size(level));
      }
      prices.push_back(least == infinite ? 0 : least);
      sum += prices.back();
    }
    const double rise = static_cast<double>(target_ - low_) / static_cast<double>(target_);
    for (double& price : prices) {
      if (sum > 0) price *= num_ranks_ / sum;
      price += rise * (price > 1 ? price : std::clamp(4 * price - 2, -1.0, 1.0));
      price = std::max(0.0, price);
    }
    return prices;
  }

  void normalize() {
    double sum = 0;
    for (const double price : prices_) sum += price;
    if (sum <= 0) return;
    for (double& price : prices_) price *= num_ranks_ / sum;
  }

  std::int64_t work() const { return contents_.work() + pool_.work(); }

  // The dearest contents at these prices. False if nothing can be said.
  bool look() {
    std::vector<std::int64_t> whole;
    std::int64_t sum = 0;
    for (const double price : prices_) {
      whole.push_back(static_cast<std::int64_t>(price * unit));
      sum += whole.back();
    }
    // What one of the ranks runs is worth at least this.
    const std::int64_t mean = (sum + num_ranks_ - 1) / num_ranks_;
    if (mean <= 0) return false;
    const auto floor = static_cast<std::int64_t>(static_cast<double>(mean) * (1 - distance_));
    distance_ = next_distance;
    contents_.set_prices(whole, target_, floor);
    ContentList found;
    bool is_complete = contents_.collect(floor, most_of_each, max_work_ - work(), found);
    const auto is_dear = [&] {
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (found.worth(i) >= mean) return true;
      }
      return false;
    };
    if (!is_complete && !is_dear()) {
      is_complete = contents_.collect(mean, most_of_each, max_work_ - work(), found);
    }
    std::int64_t dearest = floor;
    for (std::size_t i = 0; i < found.size(); ++i) dearest = std::max(dearest, found.worth(i));
    dearest_ = static_cast<double>(dearest) / static_cast<double>(mean);
    is_excluded_ = is_complete && dearest < mean;
    pool_.add(found);
    return true;
  }

  const BundleTable& table_;
  std::int32_t num_ranks_;
  Nanoseconds low_;
  Nanoseconds high_;
  std::int64_t max_work_;
  RankContents contents_;
  ContentPrices pool_;
  Nanoseconds target_ = 0;
  std::vector<double> prices_;
  std::vector<double> best_;         // of those that were tried for the target
  double least_dearest_ = infinite;  // with them
  double reach_ = max_reach;
  double distance_ = first_distance;
  // Of the last look:
  double dearest_ = 0;  // content, in parts of the mean
  bool is_excluded_ = false;
};

}  // namespace

Nanoseconds rank_bound(const BundleTable& table, std::int32_t num_ranks, Nanoseconds low,
                       Nanoseconds high) {
  if (low >= high) return low;
  return RankBound(table, num_ranks, low, high).raised();
}

}  // namespace isochron
