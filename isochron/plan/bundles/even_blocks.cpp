// Number partitioning, two or three blocks at a time.
//
// The largest bundle first, each goes to the block that has least. Then the latest block and
// another one share what they have in the best of all ways, until no other block helps, nor two
// others do; then two of them are mixed at random, and it goes on from there.

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
      if (!improves(late) && !improves_with_two(late)) mix(blocks_[late].time);
      if (const Nanoseconds time = blocks_[latest()].time; time < best_time) {
        best_time = time;
        best = blocks_;
      }
    }
    return best;
  }

 private:
  static constexpr std::size_t max_together = 2 * BundleSet::few;
  static constexpr std::size_t few_together = 11;  // of three blocks: with more it takes too long

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

  // Whether this one gets earlier if it and two others share anew.
  bool improves_with_two(std::size_t late) {
    const std::size_t count = blocks_.size();
    const std::size_t first = pick(count);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t one = (first + k) % count;
      if (one == late) continue;
      for (std::size_t l = k + 1; l < count && work_left_ > 0; ++l) {
        const std::size_t other = (first + l) % count;
        if (other != late && share(late, one, other)) return true;
      }
    }
    return false;
  }

  // The bundles of some blocks.
  struct Together {
    std::array<BundleId, max_together> bundles = {};
    std::array<Nanoseconds, max_together> costs = {};
    std::size_t count = 0;
    Nanoseconds sum = 0;  // with what was taken
  };
  Together together(std::span<const std::size_t> blocks) const {
    Together all;
    for (const std::size_t block : blocks) {
      all.sum += taken_[block];
      for (const BundleId bundle : blocks_[block].ids()) {
        const Nanoseconds cost = table_.use(level_, bundle).cost;
        all.bundles[all.count] = bundle;
        all.costs[all.count++] = cost;
        all.sum += cost;
      }
    }
    return all;
  }

  // The cost of each of the first `count` sets of these bundles.
  void add_up(const Together& all, std::size_t count) {
    work_left_ -= static_cast<std::int64_t>(count);
    for (std::size_t set = 1; set < count; ++set) {
      sums_[set] =
          sums_[set & (set - 1)] + all.costs[static_cast<std::size_t>(std::countr_zero(set))];
    }
  }

  // Tells `see` the larger cost of every split, that is of every set of bundles for `a`. If blocks
  // have done as much before, the last bundle stays in `b`.
  template <class See>
  void each_split(std::size_t a, std::size_t b, const Together& all, See see) {
    const bool are_alike = taken_[a] == taken_[b];
    const std::size_t num_splits = std::size_t{1} << (are_alike ? all.count - 1 : all.count);
    add_up(all, num_splits);
    for (std::size_t split = 0; split < num_splits; ++split) {
      const Nanoseconds cost = taken_[a] + sums_[split];
      see(split, std::max(cost, all.sum - cost));
    }
  }

  // On either side of a split.
  static bool has_few(std::size_t split, const Together& all) {
    const auto left = static_cast<std::size_t>(std::popcount(split));
    return left <= BundleSet::few && all.count - left <= BundleSet::few;
  }

  // Gives each block its set of the bundles, and the last one what is left, if all are done before
  // `limit`.
  template <std::size_t num_blocks>
  bool apply(const std::array<std::size_t, num_blocks>& blocks, const Together& all,
             const std::array<std::size_t, num_blocks - 1>& sets, Nanoseconds limit) {
    std::array<BundleSet, num_blocks> parts;
    for (std::size_t i = 0; i < all.count; ++i) {
      std::size_t k = 0;
      while (k < sets.size() && (sets[k] >> i & 1) == 0) ++k;
      if (parts[k].count == BundleSet::few) return false;
      parts[k].bundles[parts[k].count++] = all.bundles[i];
    }
    for (std::size_t k = 0; k < num_blocks; ++k) {
      parts[k].time = time_of(blocks[k], parts[k]);
      if (parts[k].time >= limit) return false;
    }
    for (std::size_t k = 0; k < num_blocks; ++k) blocks_[blocks[k]] = parts[k];
    return true;
  }

  // The split that is closest to even, if it is better.
  bool share(std::size_t a, std::size_t b) {
    const Together all = together(std::array{a, b});
    if (all.count == 0) return false;
    std::size_t best = 0;
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    each_split(a, b, all, [&](std::size_t split, Nanoseconds larger) {
      if (larger >= least || !has_few(split, all)) return;
      least = larger;
      best = split;
    });
    return apply<2>({a, b}, all, {best}, std::max(blocks_[a].time, blocks_[b].time));
  }

  // The same for three blocks with few bundles, of which the first is the latest. What it gets, and
  // what both others have then, has to cost less than now: few splits are left. If blocks have done
  // as much before, the first bundle of those that are left stays in each.
  bool share(std::size_t late, std::size_t a, std::size_t b) {
    if (blocks_[late].count + blocks_[a].count + blocks_[b].count > few_together) return false;
    const Together all = together(std::array{late, a, b});
    const bool are_alike = taken_[late] == taken_[a] && taken_[a] == taken_[b];
    const std::size_t num_sets = std::size_t{1} << all.count;
    add_up(all, num_sets);
    Nanoseconds least = blocks_[late].time - table_.fixed(level_);
    std::array<std::size_t, 2> best = {};
    bool is_found = false;
    for (std::size_t first = are_alike ? 1 : 0; first < num_sets; first += are_alike ? 2 : 1) {
      const Nanoseconds cost = taken_[late] + sums_[first];
      const Nanoseconds left = all.sum - cost;
      if (cost >= least || left >= 2 * least) continue;
      const std::size_t others = num_sets - 1 - first;
      const std::size_t fixed = are_alike ? others & (~others + 1) : 0;
      const std::size_t movable = others ^ fixed;
      for (std::size_t more = movable;; more = (more - 1) & movable) {
        --work_left_;
        const std::size_t second = more | fixed;
        const Nanoseconds next = taken_[a] + sums_[second];
        const Nanoseconds larger = std::max({cost, next, left - next});
        if (larger < least) {
          least = larger;
          best = {first, second};
          is_found = true;
        }
        if (more == 0) break;
      }
    }
    return is_found && apply<3>({late, a, b}, all, best, blocks_[late].time);
  }

  // Two blocks get another split with which they are done before `limit` too.
  void mix(Nanoseconds limit) {
    const std::size_t a = pick(blocks_.size());
    const std::size_t b = pick(blocks_.size());
    --work_left_;
    if (a == b) return;
    const Together all = together(std::array{a, b});
    if (all.count == 0) return;
    const std::size_t now = (std::size_t{1} << blocks_[a].count) - 1;
    const std::size_t others = ((std::size_t{1} << all.count) - 1) ^ now;
    const Nanoseconds latest = limit - table_.fixed(level_);
    std::array<std::size_t, 16> found = {};
    std::size_t num_found = 0;
    each_split(a, b, all, [&](std::size_t split, Nanoseconds larger) {
      if (larger >= latest || split == now || split == others) return;
      if (num_found == found.size() || !has_few(split, all)) return;
      found[num_found++] = split;
    });
    if (num_found > 0) apply<2>({a, b}, all, {found[pick(num_found)]}, limit);
  }

  const BundleTable& table_;
  std::int32_t level_;
  std::span<const Nanoseconds> taken_;
  Random& random_;
  std::vector<BundleSet> blocks_;
  std::int64_t work_left_ = 0;
  std::array<Nanoseconds, std::size_t{1} << max_together> sums_ = {};  // of sets of bundles
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
