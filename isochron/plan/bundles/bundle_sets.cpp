#include "isochron/plan/bundles/bundle_sets.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace isochron {

bool has_halves(const BundleTable& table, std::int32_t level) {
  for (std::int32_t l = 1; l <= level; ++l) {
    if (table.size(l) != 2 * table.size(l - 1)) return false;
  }
  return true;
}

BlockPacker::BlockPacker(const BundleTable& table, std::int32_t level, Ranks ranks)
    : table_(table), ranks_(ranks) {
  levels_.resize(static_cast<std::size_t>(level) + 1);
}

Nanoseconds BlockPacker::time(std::span<const BundleId> bundles, Nanoseconds limit) {
  count_ = bundles.size();
  const Mask all = (Mask{1} << count_) - 1;
  const Level* half = nullptr;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const auto level = static_cast<std::int32_t>(l);
    Level& here = levels_[l];
    // On the whole block first.
    here.whole = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (table_.fits(level, bundles[i]) && table_.time(level, bundles[i]) <= limit) {
        here.whole |= Mask{1} << i;
      }
    }
    uses_[0] = {};
    here.own[0] = 0;
    for (Mask set = next(0, here.whole); set != 0; set = next(set, here.whole)) {
      const BundleId bundle = bundles[static_cast<std::size_t>(std::countr_zero(set))];
      const BlockUse& more = table_.use(level, bundle);
      uses_[set] = uses_[set & (set - 1)];
      uses_[set].cost += more.cost;
      uses_[set].tokens += more.tokens;
      uses_[set].sequences += more.sequences;
      const Nanoseconds time = table_.time(level, uses_[set]);
      here.own[set] = time <= limit ? time : never;
    }
    // In its halves: bundles that half of a block runs within the limit; sets have no others there.
    here.inside = half == nullptr ? 0 : half->whole | half->inside;
    here.split[0] = 0;
    for (Mask set = next(0, here.inside); set != 0; set = next(set, here.inside)) {
      const Mask rest = set & (set - 1);
      Nanoseconds least = never;
      for (Mask with = rest;; with = (with - 1) & rest) {
        const Mask left = (set ^ rest) | with;  // halves are alike: the lowest is on the left
        least = std::min(least, std::max(half->time[left], half->time[set ^ left]));
        if (with == 0) break;
      }
      here.split[set] = least;
    }
    const Mask both = here.whole | here.inside;
    here.time[0] = 0;
    for (Mask set = next(0, both); set != 0; set = next(set, both)) {
      Nanoseconds least = (set & ~here.inside) == 0 ? here.split[set] : never;
      if (ranks_ == Ranks::keep_groups) {
        here.time[set] = (set & ~here.whole) == 0 ? std::min(least, here.own[set]) : least;
        continue;
      }
      // The others run where alone they are in time.
      const Mask either = set & here.inside & here.whole;
      for (Mask more = 0;; more = next(more, either)) {
        const Mask split = (set & ~here.whole) | more;
        least = std::min(least, here.own[set ^ split] + here.split[split]);
        if (more == either) break;
      }
      here.time[set] = least > limit ? never : least;
    }
    half = &here;
  }
  if ((half->whole | half->inside) != all) return -1;
  const Nanoseconds time = half->time[all];
  return time >= never ? -1 : time;
}

// What makes the time of a set: the first way that takes no longer.
BlockPacker::Choice BlockPacker::choice(std::size_t l, Mask set) const {
  const Level& here = levels_[l];
  const auto with_left = [&](Mask own) {
    const Mask split = set ^ own;
    const Mask rest = split & (split - 1);
    for (Mask with = rest; split != 0; with = (with - 1) & rest) {
      const Mask left = (split ^ rest) | with;
      const auto& half = levels_[l - 1].time;
      if (std::max(half[left], half[split ^ left]) == here.split[split]) {
        return Choice{.own = own, .left = left};
      }
      if (with == 0) break;
    }
    return Choice{.own = own, .left = 0};
  };
  if ((set & ~here.inside) == 0 && here.split[set] == here.time[set]) return with_left(0);
  if (ranks_ == Ranks::keep_groups) return with_left(set);
  const Mask either = set & here.inside & here.whole;
  Mask more = 0;
  while (more != either) {
    const Mask split = (set & ~here.whole) | more;
    if (here.own[set ^ split] + here.split[split] == here.time[set]) break;
    more = next(more, either);
  }
  return with_left(set & here.whole & ~more);
}

void BlockPacker::collect(std::int32_t level, Mask set, std::int32_t block,
                          std::vector<BundlePlace>& places) const {
  if (set == 0) return;
  const Choice chosen = choice(static_cast<std::size_t>(level), set);
  for (Mask own = chosen.own; own != 0; own &= own - 1) {
    places[static_cast<std::size_t>(std::countr_zero(own))] = {.level = level, .block = block};
  }
  if (level == 0) return;
  collect(level - 1, chosen.left, 2 * block, places);
  collect(level - 1, set ^ chosen.own ^ chosen.left, 2 * block + 1, places);
}

std::vector<BundlePlace> BlockPacker::places() const {
  std::vector<BundlePlace> places(count_);
  collect(static_cast<std::int32_t>(levels_.size()) - 1, (Mask{1} << count_) - 1, 0, places);
  return places;
}

std::vector<double> least_areas(const BundleTable& table, std::int32_t level, Nanoseconds time) {
  std::vector<double> areas;
  for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t l = 0; l <= level; ++l) {
      if (!table.fits(l, bundle) || table.time(l, bundle) > time) continue;
      least = std::min(least, static_cast<double>(table.use(l, bundle).cost) * table.size(l));
    }
    areas.push_back(least);
  }
  return areas;
}

double small_area(const BundleTable& table, std::int32_t level, Nanoseconds time) {
  constexpr double most = BundleSet::few + 1;
  return static_cast<double>(time) * table.size(level) * (1 + 1e-6) / most;
}

namespace {

// Depth first over bundles from the least area up: once one has no room, no later one has.
class SetFinder {
 public:
  SetFinder(const BundleTable& table, std::int32_t level, Nanoseconds time, double small,
            std::size_t most)
      : packer_(table, level), time_(time), most_(most) {
    const std::vector<double> areas = least_areas(table, level, time);
    room_ = static_cast<double>(time) * table.size(level) * (1 + 1e-9);
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      const double area = areas[static_cast<std::size_t>(bundle)];
      if (area > small) by_area_.emplace_back(area, bundle);
    }
    std::sort(by_area_.begin(), by_area_.end());
  }

  // What the areas alone admit is counted in no time, and sets that take too long are seldom most
  // of them.
  bool run() {
    num_left_ = 2 * most_;
    return admits(0, 0, 0) && extend(0, 0);
  }
  std::vector<BundleSet> take() { return std::move(sets_); }

 private:
  // False if areas admit too many sets, or too large ones.
  bool admits(std::size_t first, double area, std::size_t count) {
    for (std::size_t i = first; i < by_area_.size(); ++i) {
      const double with = area + by_area_[i].first;
      if (with > room_) break;
      if (count == BundleSet::few || num_left_ == 0) return false;
      --num_left_;
      if (!admits(i + 1, with, count + 1)) return false;
    }
    return true;
  }

  // False if there are too many.
  bool extend(std::size_t first, double area) {
    for (std::size_t i = first; i < by_area_.size(); ++i) {
      const double with = area + by_area_[i].first;
      if (with > room_) break;
      if (set_.count == BundleSet::few) return false;
      set_.bundles[set_.count++] = by_area_[i].second;
      set_.time = packer_.time(set_.ids(), time_);
      // A set that takes too long does so with more in it.
      const bool is_in_time = set_.time >= 0;
      if (is_in_time) {
        if (sets_.size() == most_) return false;
        sets_.push_back(set_);
        if (!extend(i + 1, with)) return false;
      }
      --set_.count;
    }
    return true;
  }

  BlockPacker packer_;
  Nanoseconds time_;
  std::size_t most_;
  std::size_t num_left_ = 0;  // that areas may admit
  double room_ = 0;
  std::vector<std::pair<double, BundleId>> by_area_;
  BundleSet set_;
  std::vector<BundleSet> sets_;
};

}  // namespace

std::optional<std::vector<BundleSet>> find_bundle_sets(const BundleTable& table, std::int32_t level,
                                                       Nanoseconds time, double small,
                                                       std::size_t most) {
  SetFinder finder(table, level, time, small, most);
  if (!finder.run()) return std::nullopt;
  std::vector<BundleSet> sets = finder.take();
  std::stable_sort(sets.begin(), sets.end(),
                   [](const BundleSet& a, const BundleSet& b) { return a.time < b.time; });
  return sets;
}

}  // namespace isochron
