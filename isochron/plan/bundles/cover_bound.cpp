// Which bundles share a block of ranks: a bound by linear programming.
//
// Cut the ranks into blocks of one size. Within T a block runs a set of bundles in groups of its
// own size and smaller ones, and in the time that is left its part of wider groups. Let every
// bundle have a price: if the dearest content of a block within T is worth v, and all bundles
// together more than v times the blocks, then no step of length T exists. The prices come from the
// linear program that covers all bundles with as few blocks as possible (Gilmore and Gomory, 1961),
// over all sets that a block can run, listed or found as prices ask for them; of wider groups the
// longest takes its whole time of a block, others fill the rest at the best rate that any of them
// has, and so do small bundles where there are too many to combine. Prices that exclude T exclude
// more than that: T rises to where they fail, and the simplex method goes on from there with the
// sets that are new.
//
// Whatever the rounding of the simplex method, a bound is taken from prices only after the dearest
// content at these very prices was looked up.

#include "isochron/plan/bundles/cover_bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "isochron/plan/bundles/cover_program.h"
#include "isochron/plan/bundles/dear_sets.h"
#include "isochron/plan/bundles/wide_fill.h"

namespace isochron {

namespace {

constexpr double slack = 1e-9;  // of sums in double: more than all their roundings

class CoverBound {
 public:
  CoverBound(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
             const std::vector<BundleSet>& sets, double small, Nanoseconds high)
      : table_(table),
        level_(level),
        count_(static_cast<std::size_t>(table.num_bundles())),
        num_blocks_(num_ranks / table.size(level)),
        high_(high),
        open_(high),
        pivots_left_(150 + 24 * count_),
        areas_(least_areas(table, level, high)),
        wide_(table, level, high) {
    for (BundleId bundle = 0; bundle < table.num_bundles(); ++bundle) {
      if (area(bundle) <= small) small_.push_back(bundle);
    }
    for (const BundleSet& set : sets) add_set(set);
    fixed_ = table.fixed(0);
    for (std::int32_t l = 0; l < table.num_levels(); ++l) fixed_ = std::min(fixed_, table.fixed(l));
  }

  Nanoseconds raised(Nanoseconds low, Nanoseconds useful) {
    if (useful > low) {
      const Nanoseconds excluded = excluded_by_cover(useful);
      if (excluded <= useful) return low;
      low = excluded;
    }
    // The step at hand may be the best. If not, the rest is halved: what excludes a late target
    // took fewer steps to it than one after the other from below.
    constexpr int max_tries = 6;
    Nanoseconds target = high_ - 1;
    for (int tries = 0; tries < max_tries && target >= low; ++tries) {
      const Nanoseconds excluded = excluded_by_cover(target);
      if (excluded > target) {
        low = excluded;
      } else {
        open_ = target;
      }
      if (low >= high_ || open_ - low <= low >> 12) break;
      target = low + (open_ - low) / 2;
    }
    return low;
  }

  // Whether no step is shorter than `high`, if `sets` are not all: others are found with so much
  // work.
  bool is_high_least(DearSets& dear, std::int64_t work) {
    dear_ = &dear;
    work_left_ = work;
    return excluded_by_cover(high_ - 1) >= high_;
  }

 private:
  void add_set(const BundleSet& set) {
    double sum = 0;
    for (const BundleId bundle : set.ids()) sum += area(bundle);
    area_of_set_.push_back(sum);
    sets_.push_back(set);
  }

  // No step is shorter: more than `target` if the cover shows it.
  Nanoseconds excluded_by_cover(Nanoseconds target) {
    Nanoseconds proved = target;
    if (!begin(target)) return proved;
    for (std::size_t pivot = 0; pivots_left_ > 0 && !is_given_up_; ++pivot, --pivots_left_) {
      if (program_.num_blocks() <= num_blocks_) break;  // perhaps there is a step of this length
      const Column best = helpful(target);
      const bool is_best = best.worth <= 1 + slack && best.surplus == no_surplus;
      if (is_best || pivot % proof_interval == 0) {
        const std::size_t num_known = sets_.size();
        const Nanoseconds excluded = excluded_from(target);
        if (sets_.size() > num_known) continue;  // they may make the cover smaller
        if (excluded > target) {
          proved = std::max(proved, excluded);
          if (proved >= high_) break;
          target = std::max(proved, target + std::max(target >> 12, (open_ - target) / 8));
          target = std::min(high_ - 1, target);
          continue;
        }
      }
      if (is_best || !enter(best)) break;
    }
    return proved;
  }

  static constexpr BundleId no_surplus = -1;
  static constexpr std::size_t chunk = 128;
  static constexpr std::size_t proof_interval = 8;

  // What a block runs: a set, parts of wide bundles in what is left, and of a small one beside it.
  struct Column {
    double worth = -1;
    const BundleSet* set = nullptr;
    WideFill::Content wide = {};
    WideFill::Part small = {};
    BundleId surplus = no_surplus;  // not a block: the price of this bundle is below 0
  };
  struct Filler {
    BundleId bundle = -1;
    double rate = 0;  // worth by area
    double part = 0;  // of the bundle by area
  };

  // Blocks of disjoint sets, the fullest first, and one for every bundle that none of them has.
  bool begin(Nanoseconds target) {
    std::vector<double> part(count_, 0);  // of a bundle that a block holds at most
    std::vector<std::pair<double, std::size_t>> fullest;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].time > target) continue;
      if (sets_[i].count == 1) part[static_cast<std::size_t>(sets_[i].bundles[0])] = 1;
      fullest.emplace_back(-area_of_set_[i], i);
    }
    for (const BundleId bundle : small_) {
      part[static_cast<std::size_t>(bundle)] =
          room(static_cast<double>(target), 0) / std::max(1.0, area(bundle));
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (part[i] <= 0) part[i] = wide_.most_of(static_cast<BundleId>(i), target);
      if (part[i] <= 0) return false;
    }
    program_.begin(part);
    std::sort(fullest.begin(), fullest.end());
    std::vector<bool> is_covered(count_, false);
    for (const auto& [area, i] : fullest) {
      const auto ids = sets_[i].ids();
      const auto place = [](BundleId bundle) { return static_cast<std::size_t>(bundle); };
      if (std::any_of(ids.begin(), ids.end(), [&](BundleId b) { return is_covered[place(b)]; })) {
        continue;
      }
      for (const BundleId bundle : ids) is_covered[place(bundle)] = true;
      program_.join(ids);
    }
    return true;
  }

  double area(BundleId bundle) const { return areas_[static_cast<std::size_t>(bundle)]; }
  double price(BundleId bundle) const { return shown_[static_cast<std::size_t>(bundle)]; }
  double priced_total() const {
    double sum = 0;
    for (BundleId bundle = 0; bundle < table_.num_bundles(); ++bundle) sum += price(bundle);
    return sum;
  }
  double worth(const BundleSet& set) const {
    double sum = 0;
    for (const BundleId bundle : set.ids()) sum += price(bundle);
    return sum;
  }

  // The small bundle of the best worth per area.
  Filler best_small() const {
    Filler best;
    for (const BundleId bundle : small_) {
      const double part = 1 / std::max(1.0, area(bundle));
      if (best.bundle < 0 || part * price(bundle) > best.rate) {
        best = {.bundle = bundle, .rate = part * price(bundle), .part = part};
      }
    }
    return best;
  }

  // Ranks times time that small bundles find in a block until `time`, beside others of an area.
  double room(double time, double area) const {
    return std::max(0.0, table_.size(level_) * (time - static_cast<double>(fixed_)) - area);
  }

  // Small bundles fill what wide ones leave of a block, too.
  Filler show_fillers() {
    const Filler small = best_small();
    wide_.set_prices(shown_, small.bundle, small.rate * table_.size(level_));
    return small;
  }

  // Of sets from `begin` to `end`; the first that is worth `enough`.
  Column dearest(Nanoseconds target, std::size_t begin, std::size_t end,
                 double enough = std::numeric_limits<double>::infinity()) {
    const Filler small = show_fillers();
    Column best;
    const auto consider = [&](const BundleSet* set, double own, Nanoseconds used, double area) {
      const double all = room(static_cast<double>(target), area);
      if (own + small.rate * all > best.worth) {
        best = {.worth = own + small.rate * all,
                .set = set,
                .wide = {},
                .small = {.bundle = small.bundle, .part = small.part * all}};
      }
      const Nanoseconds rest = target - used;
      const double beside = room(static_cast<double>(used), area);
      const double with = own + small.rate * beside;
      if (wide_.most_worth(rest) <= best.worth - with) return;
      const auto wide = wide_.find_dearest(rest, best.worth - with);
      if (!wide) return;
      best = {.worth = with + wide->worth,
              .set = set,
              .wide = *wide,
              .small = {.bundle = small.bundle, .part = small.part * beside}};
    };
    consider(nullptr, 0, 0, 0);
    for (std::size_t i = begin; i < std::min(end, sets_.size()); ++i) {
      if (sets_[i].time > target) continue;
      if (best.worth >= enough) break;
      consider(&sets_[i], worth(sets_[i]), sets_[i].time, area_of_set_[i]);
    }
    return best;
  }

  // What makes the cover smaller: a few sets are looked at at a time, all of them if none of these
  // does, and then whether a price below 0 may fall out.
  Column helpful(Nanoseconds target) {
    show_prices();
    Column best = dearest(target, next_, next_ + chunk);
    next_ = next_ + chunk < sets_.size() ? next_ + chunk : 0;
    if (best.worth <= 1 + slack) best = dearest(target, 0, sets_.size());
    if (best.worth > 1 + slack) return best;
    const auto lowest = std::min_element(shown_.begin(), shown_.end());
    if (*lowest < -slack) best.surplus = static_cast<BundleId>(lowest - shown_.begin());
    return best;
  }

  // Up to where these prices, none below 0, exclude targets; `target` if they do not exclude it.
  Nanoseconds excluded_from(Nanoseconds target) {
    show_prices();
    for (double& price : shown_) price = std::max(0.0, price);
    const double limit = priced_total() / num_blocks_ * (1 - slack);
    if (has_block_worth(limit, target)) return target;
    if (dear_ == nullptr) return std::min(high_, excluded_up_to(target, limit));
    // Whether none of the sets that are not listed is worth it either.
    const auto more = dear_->find(shown_, wide_, target, limit, work_left_);
    is_given_up_ = !more;
    if (!more) return target;
    for (const BundleSet& set : *more) add_set(set);
    return more->empty() ? target + 1 : target;
  }

  // Begins where one was found last: prices change little.
  bool has_block_worth(double limit, Nanoseconds target) {
    for (const auto& [begin, end] :
         {std::pair(last_dear_, sets_.size()), std::pair(std::size_t{0}, last_dear_)}) {
      const Column found = dearest(target, begin, end, limit);
      if (found.worth < limit) continue;
      if (found.set != nullptr) last_dear_ = static_cast<std::size_t>(found.set - sets_.data());
      return true;
    }
    return false;
  }

  // The latest target at which no block is worth the limit.
  Nanoseconds excluded_up_to(Nanoseconds target, double limit) {
    const Filler small = show_fillers();
    double latest = static_cast<double>(high_);
    const auto consider = [&](double own, Nanoseconds used, double area) {
      const auto time = static_cast<double>(used);
      if (own >= limit) {
        latest = std::min(latest, time);
        return;
      }
      if (small.rate > 0) {
        const double filled = (area + (limit - own) / small.rate) / table_.size(level_);
        latest = std::min(latest, std::max(time, static_cast<double>(fixed_) + filled));
      }
      const double beside = own + small.rate * room(time, area);
      // Most sets are not worth it by then.
      const double missing = (limit - beside) * (1 - 1e-12);
      const auto left = static_cast<Nanoseconds>(latest - time) + 1;
      if (wide_.most_worth(left) <= missing || !wide_.find_dearest(left, missing)) return;
      latest = time + wide_.time_for(missing, latest - time);
    };
    consider(0, 0, 0);
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (static_cast<double>(sets_[i].time) >= latest) continue;
      consider(worth(sets_[i]), sets_[i].time, area_of_set_[i]);
    }
    return std::max(target + 1, static_cast<Nanoseconds>(latest * (1 - 1e-12)));
  }

  void show_prices() { shown_.assign(program_.prices().begin(), program_.prices().end()); }

  // One step of the simplex method. False if nothing gets better.
  bool enter(const Column& column) {
    if (column.surplus != no_surplus) return program_.enter_surplus(column.surplus);
    content_.clear();
    if (column.set != nullptr) {
      for (const BundleId bundle : column.set->ids()) {
        content_.push_back({.bundle = bundle, .part = 1});
      }
    }
    for (const WideFill::Part& each : {column.wide.longest, column.wide.rest, column.small}) {
      if (each.bundle >= 0) content_.push_back({.bundle = each.bundle, .part = each.part});
    }
    return program_.enter(content_);
  }

  const BundleTable& table_;
  std::int32_t level_;
  std::vector<BundleSet> sets_;
  DearSets* dear_ = nullptr;  // finds more of them
  std::int64_t work_left_ = 0;
  bool is_given_up_ = false;
  std::size_t count_;
  std::int32_t num_blocks_;
  Nanoseconds high_;
  Nanoseconds open_;                 // from here on nothing is excluded
  std::size_t pivots_left_;          // about what it takes; without an end a basis could come again
  Nanoseconds fixed_ = 0;            // of a micro-batch, at least
  std::vector<double> shown_;        // prices that sets are looked at with
  std::vector<double> areas_;        // of each bundle at least
  std::vector<double> area_of_set_;  // of each set at least
  WideFill wide_;
  std::vector<BundleId> small_;  // bundles that no set has
  CoverProgram program_;
  std::vector<CoverProgram::Part> content_;  // that enters
  std::size_t next_ = 0;                     // set to look at
  std::size_t last_dear_ = 0;                // set that was worth too much
};

}  // namespace

Nanoseconds cover_bound(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
                        const std::vector<BundleSet>& sets, double small, Nanoseconds low,
                        Nanoseconds high, Nanoseconds useful) {
  return CoverBound(table, num_ranks, level, sets, small, high).raised(low, useful);
}

bool is_least_by_covers(const BundleTable& table, std::int32_t num_ranks, std::int32_t level,
                        Nanoseconds time, std::int64_t work) {
  DearSets dear(table, level, time);
  CoverBound cover(table, num_ranks, level, dear.first_sets(), 0, time);
  return cover.is_high_least(dear, work);
}

}  // namespace isochron
