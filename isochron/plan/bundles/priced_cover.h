#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/cover_program.h"
#include "isochron/plan/problem.h"

namespace isochron {

// What a block may hold, as parts of bundles.
using CoverContent = std::vector<CoverProgram::Part>;

// As much as may be done for all times together.
struct CoverWork {
  int steps = 3000;  // of the linear program
  int looks = 100;   // for contents
};

// Whether blocks of ranks, or ranks, can hold all bundles within a time: the linear program that
// covers bundles by contents, which are found where its prices ask for them. That takes long, so
// contents that were found are kept, and looked at first. Prices at which no content is worth the
// mean of all blocks prove that a time is too short.
//
// What a block may hold is known to `Contents`:
//   double most_of(BundleId bundle, Nanoseconds time)  the most of a bundle within a time
//   void set_prices(std::span<const double> prices)    none is below 0
//   bool are_below(double worth, Nanoseconds time)     no content within the time is worth as much
//   void add_dearest(Nanoseconds time, std::vector<CoverContent>& found)  a few
template <class Contents>
class PricedCover {
 public:
  PricedCover(Contents contents, std::int32_t num_bundles, double num_blocks, CoverWork work = {})
      : contents_(std::move(contents)),
        count_(static_cast<std::size_t>(num_bundles)),
        num_blocks_(num_blocks),
        left_(work) {}

  // Whether prices exclude steps of this length.
  [[nodiscard]] bool excludes(Nanoseconds target) {
    if (!begin(target)) return false;
    while (program_.num_blocks() > num_blocks_ && left_.steps-- > 0) {
      if (const Found* better = find_better(target)) {
        if (!program_.enter(better->parts)) return false;
        continue;
      }
      const auto prices = program_.prices();
      const auto lowest = std::min_element(prices.begin(), prices.end());
      if (*lowest < -slack) {
        if (!program_.enter_surplus(static_cast<BundleId>(lowest - prices.begin()))) return false;
        continue;
      }
      if (left_.looks-- <= 0) return false;
      shown_.assign(prices.begin(), prices.end());
      double total = 0;
      for (double& price : shown_) total += price = std::max(0.0, price);
      contents_.set_prices(shown_);
      if (contents_.are_below(total / num_blocks_ * (1 - slack), target)) return true;
      if (!add_contents(target)) return false;
    }
    return false;
  }

 private:
  static constexpr double slack = 1e-9;  // of sums in double: more than all their roundings

  struct Found {
    CoverContent parts;
    Nanoseconds time = 0;  // within which it was found
  };

  bool begin(Nanoseconds target) {
    std::vector<double> parts;
    for (std::size_t i = 0; i < count_; ++i) {
      parts.push_back(contents_.most_of(static_cast<BundleId>(i), target));
      if (parts.back() <= 0) return false;
    }
    program_.begin(parts);
    return true;
  }

  double worth_of(const CoverContent& content) const {
    double worth = 0;
    for (const auto& [bundle, part] : content) {
      worth += part * program_.prices()[static_cast<std::size_t>(bundle)];
    }
    return worth;
  }

  const Found* find_better(Nanoseconds target) const {
    const Found* best = nullptr;
    double most = 1 + slack;
    for (const Found& found : found_) {
      if (found.time > target) continue;
      const double worth = worth_of(found.parts);
      if (worth <= most) continue;
      most = worth;
      best = &found;
    }
    return best;
  }

  // False if none is worth more than a block.
  bool add_contents(Nanoseconds target) {
    std::vector<CoverContent> dearest;
    contents_.add_dearest(target, dearest);
    bool has_better = false;
    for (CoverContent& content : dearest) {
      if (worth_of(content) <= 1 + slack) continue;
      has_better = true;
      found_.push_back({.parts = std::move(content), .time = target});
    }
    return has_better;
  }

  Contents contents_;
  std::size_t count_;
  double num_blocks_;
  CoverWork left_;
  CoverProgram program_;
  std::vector<double> shown_;  // prices, none below 0
  std::vector<Found> found_;
};

// Raises `low` to less than `high` by halves, to a thousandth.
template <class Contents>
[[nodiscard]] Nanoseconds raised_by(PricedCover<Contents>& cover, Nanoseconds low, Nanoseconds high,
                                    int max_tries) {
  for (int tries = 0; tries < max_tries && high - low > low >> 10; ++tries) {
    const Nanoseconds target = low + (high - low) / 2;
    if (cover.excludes(target)) {
      low = target + 1;
    } else {
      high = target;
    }
  }
  return low;
}

}  // namespace isochron
