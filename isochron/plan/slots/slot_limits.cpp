// A long slot spares its long items wide groups and their traffic, but holds no more tokens than a
// short one. Both are added up: what all items take on the smallest groups that end within a limit,
// less what the ranks of one slot get done in that time with the tokens they hold.

#include "isochron/plan/slots/slot_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace isochron {

namespace {

class Estimate {
 public:
  Estimate(const SlotItems& items, const std::vector<ItemId>& work)
      : items_(items),
        work_(work),
        ranks_(items.problem().num_ranks()),
        fixed_(static_cast<double>(items.fixed(0))),
        room_(ranks_ * static_cast<double>(items.problem().capacity())) {
    for (const ItemId item : work) {
      tokens_ += static_cast<double>(items.tokens(items.smallest(item), item));
      area_ += items.least_area(item);
      if (tokens_ <= room_) densest_ = area_;
    }
  }

  // About what the step takes if its longest slot takes `limit`; negative if no size lets every
  // item end within it.
  [[nodiscard]] double operator()(Nanoseconds limit) const {
    double area = area_;
    for (const ItemId item : work_) {
      if (items_.smallest(item) == 0 && items_.cost(0, item) + items_.fixed(0) <= limit) break;
      const std::size_t place = items_.smallest_within(0, limit, item);
      const Nanoseconds cost = items_.cost(place, item);
      if (cost + items_.fixed(place) > limit) return -1;
      area += static_cast<double>(cost) * items_.problem().sizes()[place] - items_.least_area(item);
    }
    const auto length = static_cast<double>(limit);
    const double rest = area - std::min(ranks_ * (length - fixed_), densest_);
    const double slots = std::ceil(tokens_ / room_) - 1;
    return length + std::max(0.0, rest / ranks_) + fixed_ * std::max(slots, rest > 0 ? 1.0 : 0.0);
  }

 private:
  const SlotItems& items_;
  const std::vector<ItemId>& work_;
  double ranks_;
  double fixed_;
  double room_;  // tokens of a slot
  double tokens_ = 0;
  double area_ = 0;
  double densest_ = 0;  // area of the dearest items that fill them
};

}  // namespace

std::vector<Nanoseconds> promising_limits(const SlotItems& items, const std::vector<ItemId>& work,
                                          std::size_t count) {
  constexpr std::size_t most_items = 8;
  const Estimate estimate(items, work);
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, Nanoseconds>> found;
  for (std::size_t i = 0; i < std::min(most_items, work.size()); ++i) {
    const ItemId item = work[i];
    Nanoseconds last = std::numeric_limits<Nanoseconds>::max();
    for (auto place = items.smallest(item); place < items.num_places(); ++place) {
      if (!items.fits(place, item)) continue;
      const Nanoseconds limit = items.cost(place, item) + items.fixed(place);
      if (limit > last - last / 32) continue;  // of groups of any size, some are enough
      last = limit;
      if (static_cast<double>(limit) > 1.5 * least) continue;  // it takes that much and more
      const double time = estimate(limit);
      if (time >= 0) least = std::min(least, time);
      if (time >= 0) found.emplace_back(time, limit);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  // Groups of any size have limits of every length.
  const Nanoseconds closest = items.problem().is_aligned() ? 512 : 64;
  std::vector<Nanoseconds> limits;
  for (std::size_t i = 0; i < found.size() && limits.size() < count; ++i) {
    const Nanoseconds limit = found[i].second;
    const bool is_near = std::any_of(limits.begin(), limits.end(), [&](Nanoseconds other) {
      return std::abs(other - limit) < limit / closest;
    });
    if (!is_near) limits.push_back(limit);
  }
  return limits;
}

}  // namespace isochron
