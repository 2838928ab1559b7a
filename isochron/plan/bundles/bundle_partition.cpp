// Which bundles share a block of ranks: starts for every number of bundles in a block, and
// annealing.
//
// Blocks of several ranks are also filled one after the other, and some bundles widened
// (filled_steps.h). What a block needs for its bundles is found exactly, sizes and places within it
// included, so that a change is one of the partition only: a bundle goes from a late block to
// another one, or one or two of them are exchanged. A target a little below the best step so far
// makes some blocks late; what is annealed is by how much all of them are, not only the last one.
// Most changes are refused by the area of a block alone.

#include "isochron/plan/bundles/bundle_partition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/block_levels.h"
#include "isochron/plan/bundles/even_blocks.h"
#include "isochron/plan/bundles/filled_steps.h"
#include "isochron/plan/bundles/priced_sets.h"
#include "isochron/plan/bundles/rank_bound.h"
#include "isochron/plan/bundles/set_cover.h"
#include "isochron/plan/bundles/soft_prices.h"
#include "isochron/plan/bundles/tight_sets.h"
#include "isochron/plan/bundles/wide_places.h"
#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

class PartitionSearch {
 public:
  PartitionSearch(const Problem& problem, const BundleTable& table, std::int32_t level,
                  BlockPacker::Ranks ranks)
      : problem_(problem),
        table_(table),
        level_(level),
        packer_(table, level, ranks),
        may_widen_(ranks == BlockPacker::Ranks::change_groups),
        random_(5) {
    blocks_.resize(static_cast<std::size_t>(problem.num_ranks() / table.size(level)));
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      double least = std::numeric_limits<double>::infinity();
      for (std::int32_t l = 0; l <= level; ++l) {
        if (!table.fits(l, bundle)) continue;
        least = std::min(least, static_cast<double>(table.use(l, bundle).cost) * table.size(l));
      }
      area_.push_back(least / table.size(level));
    }
  }

  std::optional<Draft> run(Nanoseconds bound, std::int64_t num_trials) {
    bound_ = bound;
    find_start(num_trials);
    if (best_.empty()) return std::nullopt;
    blocks_ = best_;
    // What is taken with even odds at first, in parts of the time.
    constexpr double cool = 0.005;
    constexpr double cold = 0.0015;
    constexpr std::int32_t few = 40;  // tight sets of more bundles leave nothing to find
    if (level_ != 1) {
      anneal(num_trials / (is_short_step(problem_, bound_) ? 6 : 3), cool);
    } else if (table_.num_bundles() <= few) {
      anneal(num_trials / 8, cold);
    }
    Draft found = draft();
    found.bound = least_;
    return found;
  }

 private:
  using Blocks = std::vector<BundleSet>;

  Draft draft() {
    std::vector<RankRange> places = wide_.ranks;
    for (std::size_t k = 0; k < best_.size(); ++k) {
      if (best_[k].count == 0) continue;
      static_cast<void>(packer_.time(best_[k].ids()));
      const std::vector<BundlePlace> inside = packer_.places();
      for (std::size_t i = 0; i < inside.size(); ++i) {
        const std::int32_t size = table_.size(inside[i].level);
        const std::int64_t first = static_cast<std::int64_t>(k) * table_.size(level_);
        places[static_cast<std::size_t>(best_[k].bundles[i])] = {
            .first = first + std::int64_t{inside[i].block} * size, .size = size};
      }
    }
    return bundle_draft(problem_, places);
  }

  void find_start(std::int64_t num_trials) {
    if (!place_wide(bound_ + bound_ / 100)) return;
    if (level_ < 2) {
      const bool is_dealt = deal();
      if (is_dealt) note();
      if (is_dealt && level_ == 0) even_all(4 * num_trials);
      if (level_ == 1) try_tight_sets(num_trials);
      return;
    }
    FilledSteps filled(table_, problem_.num_ranks(), level_, packer_, bound_);
    std::int64_t work = 8 * num_trials;
    std::optional<BlockStep> best = annealed_step(num_trials / 3);
    if (!best) return;
    filled.refill(*best, work);
    for (const Nanoseconds limit : narrower_limits(table_, level_, best->wide)) {
      if (limit >= best->time || !place_wide(limit)) break;
      std::optional<BlockStep> narrower = annealed_step(num_trials / 6);
      if (!narrower) continue;
      filled.refill(*narrower, work);
      if (narrower->time < best->time) best = std::move(narrower);
    }
    constexpr std::size_t most_in_a_block = 3;  // with more of them holes are small
    if (may_widen_ && area_.size() <= most_in_a_block * blocks_.size()) {
      work = 16 * num_trials;
      filled.widen(*best, work);
    }
    wide_ = std::move(best->wide);
    best_ = std::move(best->blocks);
    best_time_ = best->time;
  }

  bool place_wide(Nanoseconds limit) {
    auto places = find_wide_places(table_, problem_.num_ranks(), level_, limit);
    if (!places) return false;
    wide_ = *std::move(places);
    return true;
  }

  std::optional<BlockStep> annealed_step(std::int64_t num_trials) {
    constexpr double hot = 0.05;
    if (!deal()) return std::nullopt;
    best_.clear();
    note();
    anneal(num_trials, hot);
    return BlockStep{.wide = wide_, .blocks = best_, .time = best_time_};
  }

  std::vector<BundleId> dealt_out() const {
    std::vector<BundleId> bundles;
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) {
      if (!wide_.has(bundle)) bundles.push_back(bundle);
    }
    return bundles;
  }

  void even_all(std::int64_t work) {
    const auto even = even_blocks(table_, level_, Blocks(blocks_.size()), wide_.before, dealt_out(),
                                  bound_, work, random_);
    if (!even) return;
    blocks_ = *even;
    note();
  }

  // Negative if it is more than a limit.
  Nanoseconds time_of(std::size_t block, const BundleSet& set,
                      Nanoseconds limit = BlockPacker::never - 1) {
    if (set.count == 0) return wide_.before[block];
    const Nanoseconds time = packer_.time(set.ids(), limit - wide_.before[block]);
    return time < 0 ? time : wide_.before[block] + time;
  }

  // Tight sets on the halves of some blocks, and groups as wide as a block, which are even, for
  // what they leave.
  void try_tight_sets(std::int64_t num_trials) {
    const std::vector<BundleId> bundles = dealt_out();
    for (const BundleId bundle : bundles) {
      if (!table_.fits(level_, bundle)) return;
    }
    TightQuestion question{.level = level_ - 1, .bundles = bundles};
    for (const Nanoseconds base : wide_.before) {
      (base == 0 ? question.num_groups : question.num_other_groups) += 2;
      question.taken += 2 * base;
    }
    if (try_priced_sets(question, num_trials / 2)) return;
    // Few bundles are soon chosen, but not soon even.
    constexpr std::int64_t enough = 100;  // trials for a bundle
    const std::int64_t num_calls =
        std::clamp<std::int64_t>(num_trials / (enough * table_.num_bundles()), 1, 4);
    const std::int64_t trials = 3 * num_trials / 5 / num_calls;
    for (std::int64_t i = 0; i < num_calls; ++i) {
      const auto choices =
          find_tight_sets(table_, question, bound_ + bound_ / 128, trials, random_);
      for (const TightSets& tight : choices) {
        if (!best_.empty() && tight.time >= best_time_) break;
        if (is_even_beside(tight, 10 * trials)) note();
      }
    }
    if (best_.empty()) return;
    const auto cover = find_cover(table_, question, bound_, best_time_, 25 * num_trials);
    if (cover && is_even_beside(*cover, 0)) note();
  }

  // Of many bundles: whether all found a place in a set that is worth it.
  bool try_priced_sets(const TightQuestion& question, std::int64_t num_trials) {
    constexpr std::int64_t enough = 40;  // trials for a bundle
    if (!has_priced_bundles(problem_) || num_trials < enough * table_.num_bundles()) return false;
    // Wide groups are a way out, and a rank has one micro-batch.
    if (!is_cheap(table_, level_, 1.06) || !fills_one_microbatch(table_, problem_.num_ranks()))
      return false;
    const SoftPrices prices = find_soft_prices(table_, problem_.num_ranks(), bound_);
    if (prices.time <= bound_) return false;
    if (!is_short_step(problem_, bound_)) num_trials *= 3;
    const auto sets = find_priced_sets(table_, question, wide_.before, prices, num_trials, random_);
    const bool is_found = sets && is_even_beside(*sets, 0);
    if (is_found) note();
    if (may_widen_) {
      least_ = rank_bound(table_, problem_.num_ranks(), bound_, best_time_, prices);
    }
    return is_found;
  }

  // Whether the rest finds its places beside these.
  bool is_even_beside(const TightSets& tight, std::int64_t work) {
    std::fill(blocks_.begin(), blocks_.end(), BundleSet{});
    std::vector<bool> is_dealt = place_narrow(tight.narrow);
    std::vector<std::size_t> others;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k].count == 0) others.push_back(k);
    }
    // Those that are free first, for sets.
    std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return wide_.before[a] < wide_.before[b];
    });
    std::vector<Nanoseconds> taken;
    for (const std::size_t k : others) taken.push_back(wide_.before[k]);
    std::vector<BundleSet> wide(others.size());
    for (std::size_t i = 0; i < std::min(wide.size(), tight.wide.size()); ++i) {
      for (const BundleId bundle : tight.wide[i]) {
        wide[i].bundles[wide[i].count++] = bundle;
        is_dealt[static_cast<std::size_t>(bundle)] = true;
      }
    }
    std::vector<BundleId> rest;
    for (std::size_t i = 0; i < is_dealt.size(); ++i) {
      if (const auto bundle = static_cast<BundleId>(i); !is_dealt[i] && !wide_.has(bundle)) {
        rest.push_back(bundle);
      }
    }
    if (others.empty()) return rest.empty();
    const auto even =
        even_blocks(table_, level_, std::move(wide), taken, rest, tight.time, work, random_);
    if (!even) return false;
    for (std::size_t i = 0; i < others.size(); ++i) blocks_[others[i]] = (*even)[i];
    return true;
  }

  // Two of them a block, many bundles beside few, in blocks that no wide bundle has; which bundles
  // that are.
  std::vector<bool> place_narrow(std::vector<TightSet> sets) {
    std::vector<bool> is_dealt(area_.size(), false);
    std::stable_sort(sets.begin(), sets.end(),
                     [](const TightSet& a, const TightSet& b) { return a.size() < b.size(); });
    std::size_t block = 0;
    std::size_t first = 0;
    for (std::size_t last = sets.size(); last > first + 1;) {
      const TightSet& many = sets[--last];
      if (many.size() + sets[first].size() > BundleSet::few) continue;
      while (block < blocks_.size() && wide_.before[block] > 0) ++block;
      if (block == blocks_.size()) break;
      for (const TightSet& set : {many, sets[first]}) {
        for (const BundleId bundle : set) {
          is_dealt[static_cast<std::size_t>(bundle)] = true;
          blocks_[block].bundles[blocks_[block].count++] = bundle;
        }
      }
      blocks_[block].time = time_of(block, blocks_[block]);
      ++first;
      ++block;
    }
    return is_dealt;
  }

  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>((random_.next() >> 32) * count >> 32);
  }

  // The largest first, to the block with the least area. False if one would have too many.
  bool deal() {
    std::fill(blocks_.begin(), blocks_.end(), BundleSet{});
    std::vector<std::pair<double, BundleId>> order;
    for (std::size_t i = 0; i < area_.size(); ++i) {
      const auto bundle = static_cast<BundleId>(i);
      if (wide_.has(bundle)) continue;
      if (area_[i] == std::numeric_limits<double>::infinity()) return false;
      order.emplace_back(-area_[i], bundle);
    }
    std::sort(order.begin(), order.end());
    std::vector<double> areas(wide_.before.begin(), wide_.before.end());
    for (const auto& [area, bundle] : order) {
      const auto k =
          static_cast<std::size_t>(std::min_element(areas.begin(), areas.end()) - areas.begin());
      BundleSet& block = blocks_[k];
      if (block.count == max_in_block) return false;
      areas[k] -= area;
      block.bundles[block.count++] = bundle;
    }
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      blocks_[k].time = time_of(k, blocks_[k]);
      if (blocks_[k].time < 0) return false;
    }
    return true;
  }

  void note() {
    const Nanoseconds now = time();
    if (!best_.empty() && now >= best_time_) return;
    best_time_ = now;
    best_ = blocks_;
  }

  Nanoseconds time() const {
    return std::max_element(blocks_.begin(), blocks_.end(),
                            [](const BundleSet& a, const BundleSet& b) { return a.time < b.time; })
        ->time;
  }

  double excess(double time) const { return std::max(0.0, time - static_cast<double>(target_)); }
  double excess(const BundleSet& set) const { return excess(static_cast<double>(set.time)); }

  void find_late() {
    late_.clear();
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k].time > target_) late_.push_back(k);
    }
  }

  void lower_target() {
    target_ = std::max(bound_, best_time_ - std::max<Nanoseconds>(1, best_time_ / 1000));
    find_late();
  }

  // In the end with a thousandth of the heat.
  void anneal(std::int64_t num_trials, double hot) {
    const Nanoseconds near = bound_ + (bound_ >> 12);  // the rest is not worth the time
    lower_target();
    for (std::int64_t trial = 0; trial < num_trials && best_time_ > near; ++trial) {
      const double cooled = static_cast<double>(trial) / static_cast<double>(num_trials);
      heat_ = hot * static_cast<double>(best_time_) * halved(10 * cooled);
      change();
    }
  }

  // Takes out some of a set.
  static BundleSet without(const BundleSet& set, std::size_t a, std::size_t b) {
    BundleSet left;
    for (std::size_t i = 0; i < set.count; ++i) {
      if (i != a && i != b) left.bundles[left.count++] = set.bundles[i];
    }
    return left;
  }

  // The area of what a block has, and has run before, in its time.
  double least(std::size_t block) const {
    double area = static_cast<double>(wide_.before[block]);
    for (const BundleId bundle : blocks_[block].ids()) {
      area += area_[static_cast<std::size_t>(bundle)];
    }
    return area;
  }

  void change() {
    constexpr std::size_t none = BundleSet::max_count;
    const std::size_t from = late_[pick(late_.size())];
    const std::size_t to = pick(blocks_.size());
    if (to == from) return;
    const BundleSet& giver = blocks_[from];
    const BundleSet& taker = blocks_[to];
    // One or two of the late block against none, one or two of the other.
    const auto one_or_two = [&](const BundleSet& set, bool may_be_none) {
      std::array<std::size_t, 2> picked = {none, none};
      if (set.count == 0) return picked;
      const std::size_t draw = pick(8);
      if (may_be_none && draw < 2) return picked;
      picked[0] = pick(set.count);
      if (draw == 7) picked[1] = pick(set.count);
      if (picked[1] == picked[0]) picked[1] = none;
      return picked;
    };
    const auto given = one_or_two(giver, false);
    const auto taken = one_or_two(taker, true);
    const auto count_of = [](const std::array<std::size_t, 2>& picked) {
      return static_cast<std::size_t>(picked[0] != none) +
             static_cast<std::size_t>(picked[1] != none);
    };
    const std::size_t num_given = count_of(given);
    const std::size_t num_taken = count_of(taken);
    if (giver.count - num_given + num_taken > max_in_block ||
        taker.count - num_taken + num_given > max_in_block) {
      return;
    }
    // The most that may be late for the change to be taken.
    double odds = random_.unit();
    double worse = 0;
    while (odds < 0.5 && worse < 12) {
      odds *= 2;
      worse += 1;
    }
    worse += 2 * (1 - odds);
    const double limit = excess(giver) + excess(taker) + heat_ * worse;
    const auto area_of = [&](const BundleSet& set, std::size_t i) {
      return i == none ? 0 : area_[static_cast<std::size_t>(set.bundles[i])];
    };
    const double moved = area_of(giver, given[0]) + area_of(giver, given[1]) -
                         area_of(taker, taken[0]) - area_of(taker, taken[1]);
    const double least_left = excess(least(from) - moved);
    if (least_left + excess(least(to) + moved) >= limit) return;
    BundleSet left = without(giver, given[0], given[1]);
    BundleSet right = without(taker, taken[0], taken[1]);
    const auto move = [](const BundleSet& source, const std::array<std::size_t, 2>& picked,
                         BundleSet& target) {
      for (const std::size_t i : picked) {
        if (i != none) target.bundles[target.count++] = source.bundles[i];
      }
    };
    move(giver, given, right);
    move(taker, taken, left);
    const auto latest = [&](double late) {
      return target_ + static_cast<Nanoseconds>(std::ceil(limit - late));
    };
    right.time = time_of(to, right, latest(least_left));
    if (right.time < 0 || excess(right) + least_left >= limit) return;
    left.time = time_of(from, left, latest(excess(right)));
    if (left.time < 0 || excess(right) + excess(left) >= limit) return;
    blocks_[from] = left;
    blocks_[to] = right;
    find_late();
    Nanoseconds last = 0;
    for (const std::size_t k : late_) last = std::max(last, blocks_[k].time);
    if (last >= best_time_) return;
    best_time_ = time();
    best_ = blocks_;
    if (late_.empty()) lower_target();
  }

  static constexpr std::size_t max_in_block = 5;  // with more of them a change takes too long

  const Problem& problem_;
  const BundleTable& table_;
  std::int32_t level_;
  BlockPacker packer_;
  bool may_widen_;  // groups of several sizes may follow each other
  Random random_;
  WidePlaces wide_;           // of bundles that no block runs in time
  std::vector<double> area_;  // of each bundle at least, in time of a block
  Blocks blocks_;
  Blocks best_;
  std::vector<std::size_t> late_;  // blocks over the target
  Nanoseconds best_time_ = 0;
  Nanoseconds bound_ = 0;
  Nanoseconds least_ = 0;  // a bound that prices prove
  Nanoseconds target_ = 0;
  double heat_ = 0;
};

}  // namespace

bool has_priced_bundles(const Problem& problem) {
  constexpr std::int32_t fewest = 161;  // of less than these the bound is found after the search
  constexpr std::int32_t most = 1024;
  return problem.num_bundles() >= fewest && problem.num_bundles() <= most &&
         has_nested_bundles(problem);
}

std::optional<Draft> search_partition(const Problem& problem, Nanoseconds bound,
                                      std::int64_t num_trials, BlockPacker::Ranks ranks) {
  const BundleTable table(problem);
  const std::int32_t level = level_of_blocks(table, problem.num_ranks());
  if (level < 0) return std::nullopt;
  return PartitionSearch(problem, table, level, ranks).run(bound, num_trials);
}

}  // namespace isochron
