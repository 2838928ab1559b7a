#pragma once

#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Groups wider than a block of one level, in the time that a block has left for its part of them. A
// bundle has a price, and the block its share of it. What a content is worth is never too little:
// the longest group is whole, others and short ones are taken at the best rate of those that fit
// in, as if they could be cut.
class WideFill {
 public:
  // Groups that take at most `latest`.
  WideFill(const BundleTable& table, std::int32_t level, Nanoseconds latest);

  // Besides, `beside` fills a block at `beside_rate` by time, cut anywhere; 0: nothing does.
  void set_prices(std::span<const double> prices, BundleId beside, double beside_rate);

  struct Part {
    BundleId bundle = -1;  // -1: none
    double part = 0;       // of the bundle
  };
  struct Content {
    double worth = 0;
    Part longest = {};
    Part rest = {};
  };
  // By time: no content is worth more than all of its time at this rate.
  [[nodiscard]] double highest_rate() const { return highest_rate_; }
  // No content of a time is worth more.
  [[nodiscard]] double most_worth(Nanoseconds time) const {
    return highest_rate_ * static_cast<double>(time) + most_above_rate_;
  }
  // The dearest content of a time, if it is worth more than `floor`.
  [[nodiscard]] std::optional<Content> find_dearest(Nanoseconds time, double floor) const;
  // The least time, if it is below `limit`, in which a content is worth so much; else `limit`.
  [[nodiscard]] double time_for(double worth, double limit) const;
  // The most of a bundle that a block holds within a time.
  [[nodiscard]] double most_of(BundleId bundle, Nanoseconds time) const;

 private:
  struct Group {
    Nanoseconds time = 0;  // alone
    Nanoseconds cost = 0;  // of that, what it adds to others of its size
    BundleId bundle = 0;
    double part = 0;
  };
  struct Priced {
    Nanoseconds time = 0;
    double worth = 0;  // or by time
    Part part = {};
    double above_rate = 0;  // its worth beyond the highest rate for all of its time: not positive
  };
  [[nodiscard]] Nanoseconds most_after(const Priced& longest) const;

  std::vector<Group> by_cost_;
  std::vector<Group> by_time_;  // those that are not short
  std::vector<Priced>
      longest_;               // each dearer than all shorter ones; the least below the rate first
  std::vector<Priced> rest_;  // each of a higher rate than all that cost less
  double highest_rate_ = 0;
  double most_above_rate_ = 0;  // of the longest
  Nanoseconds fixed_ = 0;       // of a micro-batch, at least
  Nanoseconds short_ = 0;       // the time of a group that need not be whole
};

}  // namespace isochron
