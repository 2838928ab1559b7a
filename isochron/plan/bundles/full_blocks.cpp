// One block after the other is filled as well as can be (minimum bin slack; Gupta and Ho, 1999).
//
// The largest bundle that is left is hardest to place: it gets the next block, and beside it stand
// those that leave least of the block's area. Sets are looked at from large bundles to small ones,
// and packed only if their area is more than the best has; with more in it, a set that takes too
// long does so too. Blocks that are taken in part come last.

#include "isochron/plan/bundles/full_blocks.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace isochron {

namespace {

class FullBlocks {
 public:
  FullBlocks(const BundleTable& table, std::int32_t level, BlockPacker& packer, Nanoseconds time,
             std::span<const BundleId> bundles, std::int64_t& work)
      : packer_(packer), time_(time), work_(work) {
    const std::vector<double> areas = least_areas(table, level, time);
    for (const BundleId bundle : bundles) {
      left_.emplace_back(areas[static_cast<std::size_t>(bundle)] / table.size(level), bundle);
    }
    std::sort(left_.begin(), left_.end(), [](const Sized& a, const Sized& b) {
      return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
    });
  }

  std::optional<std::vector<BundleSet>> run(std::span<const Nanoseconds> taken) {
    std::vector<BundleSet> blocks(taken.size());
    std::vector<std::size_t> order(taken.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return taken[a] < taken[b]; });
    for (const std::size_t k : order) {
      room_ = time_ - taken[k];
      fill();
      if (work_ <= 0) return std::nullopt;
      blocks[k] = best_;
      blocks[k].time += taken[k];
    }
    if (!left_.empty()) return std::nullopt;
    return blocks;
  }

 private:
  using Sized = std::pair<double, BundleId>;   // area of a block, by time
  static constexpr std::size_t most = 5;       // bundles in a block
  static constexpr std::int64_t packing = 64;  // takes as long as so many looks

  void fill() {
    best_ = {};
    best_area_ = 0;
    set_ = {};
    chosen_.clear();
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i].first > static_cast<double>(room_)) continue;
      extend(i, 0);
      if (best_.count > 0) break;
    }
    // From the back, so that places stay.
    for (auto i = best_chosen_.rbegin(); i != best_chosen_.rend() && best_.count > 0; ++i) {
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(*i));
    }
  }

  // All sets that have this bundle beside those at hand.
  void extend(std::size_t i, double area) {
    --work_;
    const auto& [own, bundle] = left_[i];
    const double with = area + own;
    set_.bundles[set_.count++] = bundle;
    chosen_.push_back(i);
    if (with <= best_area_ || is_packed(with)) {
      for (std::size_t j = i + 1; j < left_.size() && set_.count < most && work_ > 0; ++j) {
        const double next = left_[j].first;
        // Those that follow are smaller.
        if (with + next * static_cast<double>(most - set_.count) <= best_area_) break;
        if (with + next <= static_cast<double>(room_)) extend(j, with);
      }
    }
    chosen_.pop_back();
    --set_.count;
  }

  bool is_packed(double area) {
    work_ -= packing;
    set_.time = packer_.time(set_.ids());
    if (set_.time < 0 || set_.time > room_) return false;
    best_ = set_;
    best_area_ = area;
    best_chosen_ = chosen_;
    return true;
  }

  BlockPacker& packer_;
  Nanoseconds time_;
  std::int64_t& work_;
  std::vector<Sized> left_;  // the largest first
  Nanoseconds room_ = 0;     // of the block at hand
  BundleSet set_;
  std::vector<std::size_t> chosen_;  // what is left of which it has
  BundleSet best_;
  std::vector<std::size_t> best_chosen_;
  double best_area_ = 0;
};

}  // namespace

std::optional<std::vector<BundleSet>> full_blocks(const BundleTable& table, std::int32_t level,
                                                  BlockPacker& packer,
                                                  std::span<const Nanoseconds> taken,
                                                  std::span<const BundleId> bundles,
                                                  Nanoseconds time, std::int64_t& work) {
  return FullBlocks(table, level, packer, time, bundles, work).run(taken);
}

}  // namespace isochron
