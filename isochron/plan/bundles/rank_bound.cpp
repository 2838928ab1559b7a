// Which bundles share a rank: a bound by prices.
//
// Give every bundle a price. In a step of length T each rank runs a content that takes no longer,
// and all contents together are worth the sum of the prices: where the dearest content is worth
// less than the mean over the ranks, there is no such step. The work of bundles as prices gives the
// bound of the area; better ones make bundles cheap that fill ranks well, and dear those that leave
// holes or need a wide group. Contents that are worth too much at the prices at hand are looked up,
// prices are improved over all that are known, but only a little, since the others move too, and so
// on. What is proved is proved in whole numbers by a complete look.
//
// The ranks of a wide group all run it, but what they run beside it differs: a bundle in a group of
// s ranks is on s of them. So a few dear contents with a wide group are no harm, if those that the
// other ranks of it are left with are cheap.

#include "isochron/plan/bundles/rank_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/content_prices.h"
#include "isochron/plan/bundles/rank_contents.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// A price of 1 is the mean worth of what a rank runs.
constexpr double unit = 1 << 21;          // of whole numbers that it is counted in
constexpr double max_reach = 0.0007;      // of a price in one go, upwards
constexpr double first_distance = 0.003;  // contents that are looked up are worth so little less
constexpr double next_distance = 0.0007;
// From prices that are nearly right: at first hardly any has to rise, which makes others too dear.
constexpr double first_near_reach = 0.0001;
constexpr double most_near_reach = 0.0005;
constexpr double first_near_distance = 0.0003;
constexpr double next_near_distance = 0.0002;
constexpr double near_distance_in_block = 0.0015;
// Holes are seldom more, however far the step is that is known.
constexpr double max_first_rise = 0.006;
constexpr double max_next_rise = 0.002;
constexpr double near_enough = 1.004;      // the dearest content, to look at an earlier target
constexpr std::int32_t most_of_each = 60;  // contents with one bundle

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
    aim(std::min(0.5 * gap(), max_first_rise * static_cast<double>(low_)));
    prices_ = first_prices();
    int num_tries = 0;
    for (int round = 0; round < max_rounds && low_ < high_ && work() < max_work_; ++round) {
      normalize();
      if (!look()) break;
      if (is_excluded_) {
        low_ = target_ + 1;
        // As much later as the dearest content leaves room, and a little more.
        aim(std::min(0.12 * gap(), max_next_rise * static_cast<double>(low_)) +
            (1 - dearest_) * static_cast<double>(target_));
        reach_ = max_reach;
        num_tries = 0;
        // The prices are right for more than is asked: what is new is looked up first.
        continue;
      }
      note_dearest();
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

  // From prices that are nearly right.
  Nanoseconds raised_from(const SoftPrices& start) {
    constexpr int max_rounds = 7;
    constexpr int num_steps = 30;
    max_work_ = 4'000'000 + 2'000 * std::int64_t{table_.num_bundles()};
    prices_ = start.prices;
    reach_ = first_near_reach;
    distance_ = first_near_distance;
    next_distance_ = next_near_distance;
    distance_in_block_ = near_distance_in_block;
    target_ = std::min(high_ - 1, start.time);
    for (int round = 0; round < max_rounds && low_ < target_ && work() < max_work_; ++round) {
      normalize();
      if (!look()) break;
      if (is_excluded_) return target_ + 1;
      note_dearest();
      // The same prices are worth more of an earlier step.
      const double part = std::min(1.2 * (least_dearest_ - 1) + 0.00002, 0.0001);
      target_ -= static_cast<Nanoseconds>(part * static_cast<double>(target_));
      pool_.forget_cheap(best_, reach_);
      prices_ = pool_.improved(best_, reach_, num_steps);
      reach_ = std::min(2 * reach_, most_near_reach);
    }
    if (low_ < target_ && least_dearest_ < near_enough) look_earlier();
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

  void note_dearest() {
    if (dearest_ < least_dearest_) {
      least_dearest_ = dearest_;
      best_ = prices_;
    } else {
      reach_ /= 2;
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
    const auto below_mean = [&](double distance) {
      return static_cast<std::int64_t>(static_cast<double>(mean) * (1 - distance));
    };
    const std::int64_t least = below_mean(distance_);
    // What is known of less, the ranks of a block are not taken to be worth.
    const std::int64_t floor = below_mean(std::max(distance_, distance_in_block_));
    distance_ = next_distance_;
    contents_.set_prices(whole, target_, floor);
    dearest_ = 0;
    bool is_complete = weigh(least, mean, most_of_each, floor);
    if (!is_complete && dearest_ < 1) {
      is_complete = weigh(mean, mean, std::numeric_limits<std::int32_t>::max(), floor);
    }
    is_excluded_ = is_complete && dearest_ < 1;
    return true;
  }

  // Whether all contents that are worth `least` were found, with blocks of them for those that are
  // worth the mean.
  bool weigh(std::int64_t least, std::int64_t mean, std::int32_t most, std::int64_t floor) {
    ContentList found;
    const bool is_complete = contents_.collect(least, most, max_work_ - work(), found);
    std::int64_t dearest = least;
    for (std::size_t first = 0, last = 0; first < found.size(); first = last) {
      // Those with the same wide groups stand together.
      const auto wide = widest(found.parts(first));
      std::int64_t worth = 0;
      for (; last < found.size() && is_same(widest(found.parts(last)), wide); ++last) {
        worth = std::max(worth, found.worth(last));
      }
      const bool is_block = worth >= mean && wide[0].size > 1;
      const std::int64_t in_block = is_block ? block_worth(wide, worth, floor) : worth;
      dearest = std::max(dearest, in_block);
      const double limit = 1 + static_cast<double>(worth - in_block) / static_cast<double>(mean);
      for (std::size_t i = first; i < last; ++i) pool_.add(found.parts(i), limit);
    }
    dearest_ = std::max(dearest_, static_cast<double>(dearest) / static_cast<double>(mean));
    return is_complete;
  }

  static std::span<const ContentPart> widest(std::span<const ContentPart> parts) {
    std::size_t count = 1;
    while (count < parts.size() && parts[count].size == parts[0].size) ++count;
    return parts.first(count);
  }

  static bool is_same(std::span<const ContentPart> a, std::span<const ContentPart> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // What the ranks of a block are worth, at most and on average, whose widest groups are these;
  // `most` if that is not found out. A rank beside the dear ones is worth less than `floor`.
  std::int64_t block_worth(std::span<const ContentPart> wide, std::int64_t most,
                           std::int64_t floor) {
    ContentList beside;
    if (!contents_.collect_beside(wide, floor, max_work_ - work(), beside)) return most;
    std::vector<std::size_t> order(beside.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return beside.worth(a) > beside.worth(b);
    });
    // The dearest contents, each on as many ranks as run its last bundle.
    std::int32_t num_left = wide[0].size;
    std::int64_t above = 0;
    std::vector<std::pair<ContentPart, std::int32_t>> ranks_left;
    for (const std::size_t i : order) {
      const ContentPart last = beside.parts(i).back();
      auto known = std::find_if(ranks_left.begin(), ranks_left.end(),
                                [&](const auto& each) { return each.first == last; });
      if (known == ranks_left.end()) known = ranks_left.insert(known, {last, last.size});
      const std::int32_t num_ranks = std::min(num_left, known->second);
      known->second -= num_ranks;
      num_left -= num_ranks;
      above += num_ranks * (beside.worth(i) - floor);
    }
    return floor + (above + wide[0].size - 1) / wide[0].size;
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
  double distance_ = first_distance;  // of the next look
  double next_distance_ = next_distance;
  double distance_in_block_ = 0;  // at least
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

Nanoseconds rank_bound(const BundleTable& table, std::int32_t num_ranks, Nanoseconds low,
                       Nanoseconds high, const SoftPrices& start) {
  if (low >= high) return low;
  return RankBound(table, num_ranks, low, high).raised_from(start);
}

}  // namespace isochron
