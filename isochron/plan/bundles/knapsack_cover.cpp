// The bound by covers (cover_bound.cpp) with wider groups that are whole.
//
// What a block holds is a set and wider groups in the time that is left, which a knapsack finds for
// all times at once. That takes long, so contents that were found are kept, and looked at first; a
// knapsack is solved only when none of them makes the cover smaller. Prices below which no content
// is worth its block then either prove the target, or no prices do.

#include "isochron/plan/bundles/knapsack_cover.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/bundles/cover_program.h"
#include "isochron/plan/bundles/wide_knapsack.h"

namespace isochron {

namespace {

constexpr double slack = 1e-9;  // of sums in double: more than all their roundings

class KnapsackCover {
 public:
  KnapsackCover(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
                const std::vector<BundleSet>& sets, Nanoseconds high)
      : sets_(sets),
        count_(static_cast<std::size_t>(table.num_bundles())),
        num_blocks_(num_ranks / table.size(level)),
        wide_(table, level, high) {}

  // Whether prices exclude steps of this length.
  bool excludes(Nanoseconds target) {
    if (!begin(target)) return false;
    while (program_.num_blocks() > num_blocks_ && steps_left_-- > 0) {
      if (const Content* better = find_better(target)) {
        if (!program_.enter(better->parts)) return false;
        continue;
      }
      const auto prices = program_.prices();
      const auto lowest = std::min_element(prices.begin(), prices.end());
      if (*lowest < -slack) {
        if (!program_.enter_surplus(static_cast<BundleId>(lowest - prices.begin()))) return false;
        continue;
      }
      if (knapsacks_left_-- <= 0) return false;
      shown_.assign(prices.begin(), prices.end());
      for (double& price : shown_) price = std::max(0.0, price);
      wide_.set_prices(shown_);
      if (is_proved(target)) return true;
      if (!add_contents(target)) return false;
    }
    return false;
  }

 private:
  struct Content {
    std::vector<CoverProgram::Part> parts;
    Nanoseconds time = 0;  // within which it was found
  };

  bool begin(Nanoseconds target) {
    std::vector<double> part(count_, 0);
    for (const BundleSet& set : sets_) {
      if (set.count == 1 && set.time <= target) part[static_cast<std::size_t>(set.bundles[0])] = 1;
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (part[i] <= 0) part[i] = wide_.most_of(static_cast<BundleId>(i), target);
      if (part[i] <= 0) return false;
    }
    program_.begin(part);
    return true;
  }

  const Content* find_better(Nanoseconds target) const {
    const auto prices = program_.prices();
    const Content* best = nullptr;
    double most = 1 + slack;
    for (const Content& content : contents_) {
      if (content.time > target) continue;
      double worth = 0;
      for (const auto& [bundle, part] : content.parts) {
        worth += part * prices[static_cast<std::size_t>(bundle)];
      }
      if (worth <= most) continue;
      most = worth;
      best = &content;
    }
    return best;
  }

  double worth_of(const BundleSet& set, Nanoseconds target) const {
    double worth = wide_.most_worth(target - set.time);
    for (const BundleId bundle : set.ids()) worth += shown_[static_cast<std::size_t>(bundle)];
    return worth;
  }

  // Whether no content is worth the mean of all blocks.
  bool is_proved(Nanoseconds target) const {
    double total = 0;
    for (const double price : shown_) total += price;
    const double limit = total / num_blocks_ * (1 - slack);
    return wide_.most_worth(target) < limit &&
           std::all_of(sets_.begin(), sets_.end(), [&](const BundleSet& set) {
             return set.time > target || worth_of(set, target) < limit;
           });
  }

  // The dearest, a few. False if none is worth more than a block.
  bool add_contents(Nanoseconds target) {
    constexpr std::size_t most = 24;
    std::vector<std::pair<double, std::size_t>> dearest = {
        {-wide_.most_worth(target), sets_.size()}};
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].time <= target) dearest.emplace_back(-worth_of(sets_[i], target), i);
    }
    const auto last = dearest.begin() + static_cast<std::ptrdiff_t>(std::min(most, dearest.size()));
    std::partial_sort(dearest.begin(), last, dearest.end());
    dearest.erase(last, dearest.end());
    if (-dearest.front().first <= 1 + slack) return false;
    for (const auto& [worth, i] : dearest) {
      if (-worth <= 1 + slack) break;
      const BundleSet set = i < sets_.size() ? sets_[i] : BundleSet{};
      Content content{.parts = {}, .time = target};
      for (const BundleId bundle : set.ids())
        content.parts.push_back({.bundle = bundle, .part = 1});
      wide_.add_dearest(target - set.time, content.parts);
      contents_.push_back(std::move(content));
    }
    return true;
  }

  const std::vector<BundleSet>& sets_;
  std::size_t count_;
  std::int32_t num_blocks_;
  WideKnapsack wide_;
  CoverProgram program_;
  std::vector<double> shown_;  // prices, none below 0
  std::vector<Content> contents_;
  int steps_left_ = 3000;
  int knapsacks_left_ = 100;
};

}  // namespace

Nanoseconds knapsack_cover_bound(const BundleTable& table, std::int32_t num_ranks,
                                 std::int32_t level, const std::vector<BundleSet>& sets,
                                 Nanoseconds low, Nanoseconds high) {
  KnapsackCover cover(table, num_ranks, level, sets, high);
  Nanoseconds open = high;
  constexpr int max_tries = 4;
  for (int tries = 0; tries < max_tries && open - low > low >> 10; ++tries) {
    const Nanoseconds target = low + (open - low) / 2;
    if (cover.excludes(target)) {
      low = target + 1;
    } else {
      open = target;
    }
  }
  return low;
}

}  // namespace isochron
