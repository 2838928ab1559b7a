// Bundles on groups of any size. A bundle chooses one size, c ranks, and each of them has a part of
// 1/c of it; what a rank runs takes no longer than the step. So bundles cover ranks, or the other
// way round, ranks cover bundles (priced_cover.h): where that takes more ranks than there are, the
// step is too short.
//
// Which contents are dearest is a knapsack with a choice of one size for each bundle, over times
// that are rounded down. Two bundles are what most ranks have room for at most: pairs are looked at
// first.

#include "isochron/plan/bundles/group_choice_bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/priced_cover.h"

namespace isochron {

namespace {

class RankChoices {
 public:
  RankChoices(const Problem& problem, Nanoseconds latest)
      : cell_(latest / static_cast<Nanoseconds>(num_cells) + 1), fixed_(latest) {
    for (const std::int32_t size : problem.sizes()) {
      fixed_ = std::min(fixed_, problem.least_fixed(size));
    }
    for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
      auto& choices = choices_.emplace_back();
      for (const std::int32_t size : problem.sizes()) {
        if (!problem.fits(size, bundle)) continue;
        const Nanoseconds cost = problem.least_cost(size, bundle);
        // A wider group has less of the bundle.
        if (cost + fixed_ > latest || (!choices.empty() && cost >= choices.back().cost)) continue;
        choices.push_back({.cost = cost, .part = 1.0 / size});
      }
    }
    prices_.assign(choices_.size(), 0);
  }

  // Every bundle at its fastest.
  Nanoseconds slowest() const {
    Nanoseconds slowest = 0;
    for (const Choices& choices : choices_) {
      if (!choices.empty()) slowest = std::max(slowest, choices.back().cost + fixed_);
    }
    return slowest;
  }

  double most_of(BundleId bundle, Nanoseconds time) const {
    const auto& choices = choices_[static_cast<std::size_t>(bundle)];
    const auto found = first_within(choices, time - fixed_);
    return found == choices.end() ? 0 : found->part;
  }

  void set_prices(std::span<const double> prices) {
    prices_.assign(prices.begin(), prices.end());
    worths_.clear();
  }

  bool are_below(double worth, Nanoseconds time) {
    find_pairs(worth, time);
    if (!pairs_.empty()) return false;
    fill(time);
    return worths_.back()[cells_of(time - fixed_)] < worth;
  }

  void add_dearest(Nanoseconds time, std::vector<CoverContent>& found) const {
    if (!pairs_.empty()) {
      for (const Pair& pair : pairs_) found.push_back(pair.content);
      return;
    }
    CoverContent& content = found.emplace_back();
    std::size_t left = cells_of(time - fixed_);
    for (std::size_t i = choices_.size(); i-- > 0;) {
      if (worths_[i + 1][left] <= worths_[i][left]) continue;
      for (const Choice& choice : choices_[i]) {
        const std::size_t cells = cells_of(choice.cost);
        if (choice.cost + fixed_ > time || cells > left) continue;
        if (worths_[i][left - cells] + choice.part * prices_[i] < worths_[i + 1][left]) continue;
        content.push_back({.bundle = static_cast<BundleId>(i), .part = choice.part});
        left -= cells;
        break;
      }
    }
  }

 private:
  struct Choice {
    Nanoseconds cost = 0;  // without a micro-batch
    double part = 0;       // of the bundle, on a rank
  };
  using Choices = std::vector<Choice>;  // narrowest first
  struct Pair {
    double worth = 0;
    CoverContent content;
  };
  static constexpr std::size_t num_cells = 1024;
  static constexpr std::size_t row_size = num_cells + 1;
  using Row = std::vector<double>;

  std::size_t cells_of(Nanoseconds cost) const { return static_cast<std::size_t>(cost / cell_); }

  // The most of a bundle within what is left of a rank.
  static Choices::const_iterator first_within(const Choices& choices, Nanoseconds left) {
    return std::find_if(choices.begin(), choices.end(),
                        [&](const Choice& choice) { return choice.cost <= left; });
  }

  // Of every two bundles the dearest content, where that is worth so much; the dearest of those.
  void find_pairs(double worth, Nanoseconds time) {
    pairs_.clear();
    const Nanoseconds room = time - fixed_;
    for (std::size_t a = 0; a < choices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        double most = worth;
        Pair best;
        // The wider the one group, the narrower the other.
        auto other = choices_[b].rbegin();
        for (auto own = first_within(choices_[a], room); own != choices_[a].end(); ++own) {
          while (other != choices_[b].rend() && other->cost <= room - own->cost) ++other;
          if (other == choices_[b].rbegin()) continue;
          const double part = std::prev(other)->part;
          const double both = own->part * prices_[a] + part * prices_[b];
          if (both < most) continue;
          most = both;
          best = {.worth = both,
                  .content = {{.bundle = static_cast<BundleId>(a), .part = own->part},
                              {.bundle = static_cast<BundleId>(b), .part = part}}};
        }
        if (!best.content.empty()) pairs_.push_back(std::move(best));
      }
    }
    constexpr std::size_t few = 16;
    std::stable_sort(pairs_.begin(), pairs_.end(),
                     [](const Pair& x, const Pair& y) { return x.worth > y.worth; });
    if (pairs_.size() > few) pairs_.resize(few);
  }

  // What is worth most of the first bundles, for each number of them and of cells.
  void fill(Nanoseconds time) {
    const std::size_t last = cells_of(time - fixed_);
    worths_.assign(choices_.size() + 1, Row(row_size, 0));
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const Row& before = worths_[i];
      Row& with = worths_[i + 1];
      with = before;
      for (const Choice& choice : choices_[i]) {
        const std::size_t cells = cells_of(choice.cost);
        if (choice.cost + fixed_ > time) continue;
        const double worth = choice.part * prices_[i];
        for (std::size_t c = cells; c <= last; ++c) {
          with[c] = std::max(with[c], before[c - cells] + worth);
        }
      }
    }
  }

  Nanoseconds cell_;   // time
  Nanoseconds fixed_;  // of a micro-batch, at least
  std::vector<Choices> choices_;
  // At the prices at hand.
  std::vector<double> prices_;
  std::vector<Pair> pairs_;
  std::vector<Row> worths_;
};

}  // namespace

Nanoseconds group_choice_bound(const Problem& problem, Nanoseconds low, Nanoseconds high) {
  if (low >= high) return low;
  RankChoices choices(problem, high);
  low = std::max(low, choices.slowest());
  PricedCover cover(std::move(choices), problem.num_bundles(), problem.num_ranks(),
                    {.steps = 2000, .looks = 60});
  constexpr int max_tries = 6;
  return raised_by(cover, low, high, max_tries);
}

}  // namespace isochron
