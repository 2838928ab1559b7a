// One block after the other is filled as well as can be (minimum bin slack; Gupta and Ho, 1999).
//
// The largest bundle that is left is hardest to place: it gets the next block, and beside it stand
// those that are worth most. Sets are looked at from large bundles to small ones, and packed only
// if they are worth more than the best; with more in it, a set that takes too long does so too.
// Blocks that are taken in part come first, for little fits them. Once more time of blocks is lost
// than there is to spare, some bundle will find no place. What a bundle is worth by area is learned
// from where it stood in calls before (sequential value correction; Belov and Scheithauer, 2007).

#include "isochron/plan/bundles/full_blocks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace isochron {

namespace {

class FullBlocks {
 public:
  FullBlocks(const BundleTable& table, std::int32_t level, BlockPacker& packer, Nanoseconds time,
             std::span<const BundleId> bundles, std::span<double> weights, std::int64_t& work)
      : packer_(packer), time_(time), weights_(weights), work_(work) {
    const std::vector<double> areas = least_areas(table, level, time);
    for (const BundleId bundle : bundles) {
      const double area =
          std::max(1.0, areas[static_cast<std::size_t>(bundle)] / table.size(level));
      const double weight = weights.empty() ? 1 : weights[static_cast<std::size_t>(bundle)];
      left_.push_back({.area = area, .worth = weight * area, .bundle = bundle});
    }
    std::sort(left_.begin(), left_.end(), [](const Sized& a, const Sized& b) {
      return std::pair(-a.area, a.bundle) < std::pair(-b.area, b.bundle);
    });
  }

  std::optional<std::vector<BundleSet>> run(std::span<const Nanoseconds> taken) {
    std::vector<BundleSet> blocks(taken.size());
    std::vector<std::size_t> order(taken.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return taken[a] > taken[b]; });
    double spare = 0;  // time of blocks that need not be filled
    for (const Nanoseconds before : taken) spare += static_cast<double>(time_ - before);
    for (const Sized& each : left_) spare -= each.area;
    for (const std::size_t k : order) {
      if (spare < 0) break;
      room_ = static_cast<double>(time_ - taken[k]);
      fill();
      if (work_ <= 0) return std::nullopt;
      spare -= room_ - best_area_;
      blocks[k] = best_;
      blocks[k].time += taken[k];
    }
    if (left_.empty()) return blocks;
    constexpr double without_place = 1.3;
    for (const Sized& each : left_) learn(each.bundle, without_place);
    return std::nullopt;
  }

 private:
  struct Sized {
    double area = 0;  // of a block, by time
    double worth = 0;
    BundleId bundle = 0;
  };
  static constexpr std::size_t most = 5;       // bundles in a block
  static constexpr std::int64_t packing = 64;  // takes as long as so many looks

  void learn(BundleId bundle, double weight) {
    constexpr double inertia = 0.75;
    if (weights_.empty()) return;
    double& known = weights_[static_cast<std::size_t>(bundle)];
    known = inertia * known + (1 - inertia) * weight;
  }

  void fill() {
    best_ = {};
    best_area_ = best_worth_ = 0;
    set_ = {};
    chosen_.clear();
    note_most();
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i].area > room_) continue;
      extend(i, 0, 0);
      if (best_.count > 0) break;
    }
    for (const BundleId bundle : best_.ids()) learn(bundle, room_ / best_area_);
    // From the back, so that places stay.
    for (auto i = best_chosen_.rbegin(); i != best_chosen_.rend() && best_.count > 0; ++i) {
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(*i));
    }
  }

  void note_most() {
    most_from_.assign(left_.size(), {});
    Most most_so_far;
    for (std::size_t i = left_.size(); i-- > 0;) {
      most_so_far.worth = std::max(most_so_far.worth, left_[i].worth);
      most_so_far.rate = std::max(most_so_far.rate, left_[i].worth / left_[i].area);
      most_from_[i] = most_so_far;
    }
  }

  // All sets that have this bundle beside those at hand.
  void extend(std::size_t i, double area, double worth) {
    --work_;
    area += left_[i].area;
    worth += left_[i].worth;
    set_.bundles[set_.count++] = left_[i].bundle;
    chosen_.push_back(i);
    if (worth <= best_worth_ || is_packed(area, worth)) {
      for (std::size_t j = i + 1; j < left_.size() && set_.count < most && work_ > 0; ++j) {
        const double room = room_ - area;
        const Most& rest = most_from_[j];
        const double more =
            std::min(rest.worth * static_cast<double>(most - set_.count), rest.rate * room);
        if (worth + more <= best_worth_) break;
        if (left_[j].area <= room) extend(j, area, worth);
      }
    }
    chosen_.pop_back();
    --set_.count;
  }

  bool is_packed(double area, double worth) {
    work_ -= packing;
    set_.time = packer_.time(set_.ids(), static_cast<Nanoseconds>(room_));
    if (set_.time < 0) return false;
    best_ = set_;
    best_area_ = area;
    best_worth_ = worth;
    best_chosen_ = chosen_;
    return true;
  }

  struct Most {  // of what is left from some place on
    double worth = 0;
    double rate = 0;  // by area
  };

  BlockPacker& packer_;
  Nanoseconds time_;
  std::span<double> weights_;  // of each bundle; none: all are 1
  std::int64_t& work_;
  std::vector<Sized> left_;  // the largest first
  std::vector<Most> most_from_;
  double room_ = 0;  // of the block at hand
  BundleSet set_;
  std::vector<std::size_t> chosen_;  // what is left of which it has
  BundleSet best_;
  std::vector<std::size_t> best_chosen_;
  double best_area_ = 0;
  double best_worth_ = 0;
};

}  // namespace

std::optional<std::vector<BundleSet>> full_blocks(const BundleTable& table, std::int32_t level,
                                                  BlockPacker& packer,
                                                  std::span<const Nanoseconds> taken,
                                                  std::span<const BundleId> bundles,
                                                  Nanoseconds time, std::int64_t& work,
                                                  std::span<double> weights) {
  return FullBlocks(table, level, packer, time, bundles, weights, work).run(taken);
}

}  // namespace isochron
