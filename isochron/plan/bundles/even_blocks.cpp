// Number partitioning, two blocks at a time.
//
// The largest bundle first, each goes to the block that has least. Then the latest block and
// another one share what they have in the best of all ways, until no other block helps; then two of
// them are mixed at random, and it goes on from there.

#include "isochron/plan/bundles/even_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

namespace isochron {

namespace {

class EvenBlocks {
 public:
  EvenBlocks(const BundleTable& table, std::int32_t level, std::vector<BundleSet> blocks,
             std::span<const Nanoseconds> taken, Random& random)
      : table_(table), level_(level), taken_(taken), random_(random), blocks_(std::move(blocks)) {}

  bool deal(std::span<const BundleId> bundles) {
    std::vector<std::pair<Nanoseconds, BundleId>> order;
    for (const BundleId bundle : bundles) {
      order.emplace_back(-table_.use(level_, bundle).cost, bundle);
    }
    std::sort(order.begin(), order.end());
    std::vector<Nanoseconds> costs(taken_.begin(), taken_.end());
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      for (const BundleId bundle : blocks_[k].ids()) costs[k] += table_.use(level_, bundle).cost;
    }
    for (const auto& [cost, bundle] : order) {
      const auto least = std::min_element(costs.begin(), costs.end()) - costs.begin();
      BundleSet& block = blocks_[static_cast<std::size_t>(least)];
      if (block.count == BundleSet::few) return false;
      block.bundles[block.count++] = bundle;
      costs[static_cast<std::size_t>(least)] -= cost;
    }
    for (std::size_t k = 0; k < blocks_.size(); ++k) blocks_[k].time = time_of(k, blocks_[k]);
    return true;
  }

  std::vector<BundleSet> evened(Nanoseconds aim, std::int64_t work) {
    std::vector<BundleSet> best = blocks_;
    Nanoseconds best_time = blocks_[latest()].time;
    work_left_ = work;
    while (best_time > aim && work_left_ > 0 && blocks_.size() > 1) {
      const std::size_t late = latest();
      if (blocks_[late].time < best_time) {
        best_time = blocks_[late].time;
        best = blocks_;
      }
      if (!improves(late)) mix(blocks_[late].time);
    }
    return best;
  }

 private:
  static constexpr std::size_t max_both = 2 * BundleSet::few;

  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>((random_.next() >> 32) * count >> 32);
  }

  [[nodiscard]] std::size_t latest() const {
    return static_cast<std::size_t>(
        std::max_element(blocks_.begin(), blocks_.end(),
                         [](const BundleSet& a, const BundleSet& b) { return a.time < b.time; }) -
        blocks_.begin());
  }

  [[nodiscard]] Nanoseconds time_of(std::size_t block, const BundleSet& set) const {
    if (set.count == 0) return taken_[block];
    BlockUse all;
    for (const BundleId bundle : set.ids()) {
      const BlockUse& use = table_.use(level_, bundle);
      all.cost += use.cost;
      all.tokens += use.tokens;
      all.sequences += use.sequences;
    }
    return taken_[block] + table_.time(level_, all);
  }

  // Whether sharing anew with some other block, from a random one on, makes this one earlier.
  bool improves(std::size_t late) {
    const std::size_t first = pick(blocks_.size());
    for (std::size_t k = 0; k < blocks_.size() && work_left_ > 0; ++k) {
      const std::size_t other = (first + k) % blocks_.size();
      if (other != late && share(late, other)) return true;
    }
    return false;
  }

  // The bundles of two blocks.
  struct Both {
    std::array<BundleId, max_both> bundles = {};
    std::array<Nanoseconds, max_both> costs = {};
    std::size_t count = 0;
    Nanoseconds sum = 0;  // with what was taken
  };
  Both both(std::size_t a, std::size_t b) const {
    Both all{.sum = taken_[a] + taken_[b]};
    for (const std::size_t block : {a, b}) {
      for (const BundleId bundle : blocks_[block].ids()) {
        const Nanoseconds cost = table_.use(level_, bundle).cost;
        all.bundles[all.count] = bundle;
        all.costs[all.count++] = cost;
        all.sum += cost;
      }
    }
    return all;
  }

  // Tells `see` the larger cost of every split, that is of every set of bundles for `a`. If blocks
  // have done as much before, the last bundle stays in `b`.
  template <class See>
  void each_split(std::size_t a, std::size_t b, const Both& all, See see) {
    const bool are_alike = taken_[a] == taken_[b];
    const std::size_t num_splits = std::size_t{1} << (are_alike ? all.count - 1 : all.count);
    work_left_ -= static_cast<std::int64_t>(num_splits);
    sums_[0] = taken_[a];
    for (std::size_t split = 0; split < num_splits; ++split) {
      if (split > 0) {
        sums_[split] = sums_[split & (split - 1)] +
                       all.costs[static_cast<std::size_t>(std::countr_zero(split))];
      }
      const auto left = static_cast<std::size_t>(std::popcount(split));
      if (left > BundleSet::few || all.count - left > BundleSet::few) continue;
      see(split, std::max(sums_[split], all.sum - sums_[split]));
    }
  }

  // Splits the bundles so, if both are done before `limit`.
  bool apply(std::size_t a, std::size_t b, const Both& all, std::size_t split, Nanoseconds limit) {
    BundleSet left;
    BundleSet right;
    for (std::size_t i = 0; i < all.count; ++i) {
      BundleSet& side = (split >> i & 1) != 0 ? left : right;
      side.bundles[side.count++] = all.bundles[i];
    }
    left.time = time_of(a, left);
    right.time = time_of(b, right);
    if (std::max(left.time, right.time) >= limit) return false;
    blocks_[a] = left;
    blocks_[b] = right;
    return true;
  }

  // The split that is closest to even, if it is better.
  bool share(std::size_t a, std::size_t b) {
    const Both all = both(a, b);
    if (all.count == 0) return false;
    std::size_t best = 0;
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    each_split(a, b, all, [&](std::size_t split, Nanoseconds larger) {
      if (larger >= least) return;
      least = larger;
      best = split;
    });
    return apply(a, b, all, best, std::max(blocks_[a].time, blocks_[b].time));
  }

  // Two blocks get another split with which they are done before `limit` too.
  void mix(Nanoseconds limit) {
    const std::size_t a = pick(blocks_.size());
    const std::size_t b = pick(blocks_.size());
    --work_left_;
    if (a == b) return;
    const Both all = both(a, b);
    if (all.count == 0) return;
    const std::size_t now = (std::size_t{1} << blocks_[a].count) - 1;
    const std::size_t others = ((std::size_t{1} << all.count) - 1) ^ now;
    const Nanoseconds latest = limit - table_.fixed(level_);
    std::array<std::size_t, 16> found = {};
    std::size_t num_found = 0;
    each_split(a, b, all, [&](std::size_t split, Nanoseconds larger) {
      if (larger >= latest || split == now || split == others || num_found == found.size()) return;
      found[num_found++] = split;
    });
    if (num_found > 0) apply(a, b, all, found[pick(num_found)], limit);
  }

  const BundleTable& table_;
  std::int32_t level_;
  std::span<const Nanoseconds> taken_;
  Random& random_;
  std::vector<BundleSet> blocks_;
  std::int64_t work_left_ = 0;
  std::array<Nanoseconds, std::size_t{1} << max_both> sums_ = {};  // of the left side, by split
};

}  // namespace

std::optional<std::vector<BundleSet>> even_blocks(const BundleTable& table, std::int32_t level,
                                                  std::vector<BundleSet> blocks,
                                                  std::span<const Nanoseconds> taken,
                                                  std::span<const BundleId> bundles,
                                                  Nanoseconds aim, std::int64_t work,
                                                  Random& random) {
  EvenBlocks even(table, level, std::move(blocks), taken, random);
  if (!even.deal(bundles)) return std::nullopt;
  return even.evened(aim, work);
}

}  // namespace isochron
