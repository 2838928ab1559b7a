// Exact covers of few bundles by sets that fill their groups, depth first.
//
// Sets stand on groups of one level or of the next one, and of those that are done within T as few
// groups as possible are to cover all bundles. The linear program of that gives bundles prices such
// that no set takes fewer groups than its bundles: what sets take beyond their prices may add up to
// what all prices leave of the groups only. That is next to nothing, so most branches end early.
// The largest bundle that has no set gets one: those that the program uses first, it is often
// whole.
//
// Where the program needs more groups than there are, T is refuted. What takes too long counts as
// refuted, too.

#include "isochron/plan/bundles/set_cover.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/set_program.h"

namespace isochron {

namespace {

using Mask = std::uint64_t;

class CoverSearch {
 public:
  CoverSearch(const BundleTable& table, const TightQuestion& question)
      : table_(table), num_groups_(question.num_groups) {
    const double ratio =
        static_cast<double>(table.size(question.level + 1)) / table.size(question.level);
    std::vector<std::pair<double, BundleId>> order;
    for (const BundleId bundle : question.bundles) {
      double least = ratio * static_cast<double>(table.use(question.level + 1, bundle).cost);
      if (table.fits(question.level, bundle)) {
        least = std::min(least, static_cast<double>(table.use(question.level, bundle).cost));
      }
      order.emplace_back(least, bundle);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [least, bundle] : order) {
      bundles_.push_back(bundle);
    }
    sizes_ = {Size{.level = question.level, .width = 1, .most = 4, .slack = 0.013},
              Size{.level = question.level + 1,
                   .width = static_cast<std::int32_t>(ratio),
                   .most = 5,
                   .slack = 0.009}};
  }

  std::optional<TightSets> run(Nanoseconds low, Nanoseconds high, std::int64_t work) {
    work_left_ = work;
    find_sets(high);
    Nanoseconds refuted = low;
    Nanoseconds open = high;
    std::optional<TightSets> best;
    const Nanoseconds near = std::max<Nanoseconds>(1, low >> 12);
    while (open - refuted > near && work_left_ > 0) {
      const Nanoseconds time = open - std::max<Nanoseconds>(1, (open - refuted) / 4);
      if (auto cover = cover_within(time)) {
        best = std::move(cover);
        open = best->time;
      } else {
        refuted = time;
      }
    }
    return best;
  }

 private:
  struct Size {  // of groups
    std::int32_t level = 0;
    std::int32_t width = 1;
    std::size_t most = 0;  // bundles in a set
    double slack = 0;      // of time that a set leaves at most, in parts
  };
  struct Set {
    Mask members = 0;
    Nanoseconds time = 0;
    std::int32_t size = 0;  // 0: narrow
  };
  struct Branch {
    double use = 0;    // by the linear program
    double waste = 0;  // of groups, beyond the prices of its bundles
    Mask members = 0;
    std::size_t set = 0;
  };

  [[nodiscard]] double width(const Set& set) const {
    return sizes_[static_cast<std::size_t>(set.size)].width;
  }
  static std::size_t highest(Mask mask) {
    return static_cast<std::size_t>(std::bit_width(mask)) - 1;
  }
  template <class See>
  static void each(Mask mask, See see) {
    for (; mask != 0; mask &= mask - 1) see(static_cast<std::size_t>(std::countr_zero(mask)));
  }

  void find_sets(Nanoseconds high) {
    for (std::int32_t s = 0; s < 2; ++s) {
      const Size& size = sizes_[static_cast<std::size_t>(s)];
      by_cost_.clear();
      for (std::size_t i = 0; i < bundles_.size(); ++i) {
        if (!table_.fits(size.level, bundles_[i])) continue;
        by_cost_.emplace_back(table_.use(size.level, bundles_[i]).cost, i);
      }
      std::sort(by_cost_.begin(), by_cost_.end());
      least_ = static_cast<Nanoseconds>((1 - size.slack) * static_cast<double>(high)) -
               table_.fixed(size.level);
      extend(s, {.set = {.size = s}}, high);
    }
    std::stable_sort(sets_.begin(), sets_.end(),
                     [](const Set& a, const Set& b) { return a.time < b.time; });
    std::vector<SetProgram::Set> columns;
    for (const Set& set : sets_) {
      SetProgram::Set& column = columns.emplace_back(bundles_.size(), width(set));
      std::size_t count = 0;
      each(set.members,
           [&](std::size_t i) { column.members[count++] = static_cast<std::uint8_t>(i); });
    }
    program_.emplace(bundles_.size(), sizes_[1].width, columns);
  }

  struct Draft {  // of a set
    Set set;
    BlockUse use = {};
    std::size_t next = 0;  // by cost, that may be added
  };

  // All sets that have these bundles and more.
  void extend(std::int32_t s, const Draft& draft, Nanoseconds high) {
    const Size& size = sizes_[static_cast<std::size_t>(s)];
    const Nanoseconds room = high - table_.fixed(size.level) - draft.use.cost;
    auto last =
        std::lower_bound(by_cost_.begin() + static_cast<std::ptrdiff_t>(draft.next), by_cost_.end(),
                         std::pair(least_ - draft.use.cost, std::size_t{0}));
    for (; last != by_cost_.end() && last->first <= room; ++last) {
      const Draft full = with(draft, size.level, last->second);
      if (full.set.time <= high) sets_.push_back(full.set);
    }
    if (static_cast<std::size_t>(std::popcount(draft.set.members)) + 1 >= size.most) return;
    for (std::size_t k = draft.next; k < by_cost_.size() && 2 * by_cost_[k].first <= room; ++k) {
      Draft more = with(draft, size.level, by_cost_[k].second);
      more.next = k + 1;
      extend(s, more, high);
    }
  }

  [[nodiscard]] Draft with(Draft draft, std::int32_t level, std::size_t i) const {
    const BlockUse& more = table_.use(level, bundles_[i]);
    draft.use.cost += more.cost;
    draft.use.tokens += more.tokens;
    draft.use.sequences += more.sequences;
    draft.set.members |= Mask{1} << i;
    draft.set.time = table_.time(level, draft.use);
    return draft;
  }

  // What sets waste beyond the prices of their bundles. False if prices refute the time.
  bool set_prices(std::size_t num_sets) {
    const auto price = program_->prices(num_sets);
    may_waste_ = num_groups_;
    for (const double each_price : price) may_waste_ -= each_price;
    if (may_waste_ < -rounding) return false;
    waste_.clear();
    for (std::size_t k = 0; k < num_sets; ++k) {
      waste_.push_back(width(sets_[k]));
      each(sets_[k].members, [&](std::size_t i) { waste_[k] -= price[i]; });
    }
    return true;
  }

  void set_branches() {
    branches_.assign(bundles_.size(), {});
    const std::vector<double> uses = program_->uses(waste_.size());
    for (std::size_t k = 0; k < waste_.size(); ++k) {
      if (waste_[k] > may_waste_ + rounding) continue;
      branches_[highest(sets_[k].members)].push_back(
          {.use = uses[k], .waste = waste_[k], .members = sets_[k].members, .set = k});
    }
    for (auto& branches : branches_) {
      std::stable_sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
        return std::tuple(-a.use, a.waste) < std::tuple(-b.use, b.waste);
      });
    }
  }

  std::optional<TightSets> cover_within(Nanoseconds time) {
    const auto end = std::partition_point(sets_.begin(), sets_.end(),
                                          [&](const Set& set) { return set.time <= time; });
    if (!set_prices(static_cast<std::size_t>(end - sets_.begin()))) return std::nullopt;
    set_branches();
    chosen_.clear();
    looks_left_ = std::min(work_left_, looks_at_a_time);
    const std::int64_t before = looks_left_;
    const Mask all = ~Mask{0} >> (8 * sizeof(Mask) - bundles_.size());
    const bool is_covered = cover(all, may_waste_ + rounding);
    work_left_ -= before - looks_left_;
    if (!is_covered) return std::nullopt;
    TightSets answer;
    for (const std::size_t k : chosen_) {
      auto& sets = sets_[k].size == 0 ? answer.narrow : answer.wide;
      sets.emplace_back();
      each(sets_[k].members, [&](std::size_t i) { sets.back().push_back(bundles_[i]); });
      answer.time = std::max(answer.time, sets_[k].time);
    }
    return answer;
  }

  // More groups than there are would waste more.
  bool cover(Mask open, double may_waste) {
    if (open == 0) return true;
    for (const Branch& branch : branches_[highest(open)]) {
      if (looks_left_-- <= 0) return false;
      if (branch.waste > may_waste && branch.use == 0) return false;
      if (branch.waste > may_waste || (branch.members & ~open) != 0) continue;
      chosen_.push_back(branch.set);
      if (cover(open ^ branch.members, may_waste - branch.waste)) return true;
      chosen_.pop_back();
    }
    return false;
  }

  static constexpr std::int64_t looks_at_a_time = 10'000;
  static constexpr double rounding = 1e-7;  // of groups

  const BundleTable& table_;
  std::int32_t num_groups_;
  std::vector<BundleId> bundles_;  // by what they take at least, ascending
  std::array<Size, 2> sizes_;
  std::vector<std::pair<Nanoseconds, std::size_t>> by_cost_;  // on groups of the size at hand
  Nanoseconds least_ = 0;                                     // of these in a set
  std::vector<Set> sets_;
  std::optional<SetProgram> program_;
  std::vector<double> waste_;                  // of sets within a time, beyond prices
  std::vector<std::vector<Branch>> branches_;  // sets within a time by their largest bundle
  double may_waste_ = 0;                       // beyond prices, all groups together
  std::int64_t work_left_ = 0;
  std::int64_t looks_left_ = 0;
  std::vector<std::size_t> chosen_;
};

}  // namespace

bool is_coverable(const TightQuestion& question) {
  constexpr std::size_t max_bundles = 40;  // of more of them there are too many sets
  return !question.bundles.empty() && question.bundles.size() <= max_bundles &&
         question.num_other_groups == 0;
}

std::optional<TightSets> find_cover(const BundleTable& table, const TightQuestion& question,
                                    Nanoseconds low, Nanoseconds high, std::int64_t work) {
  if (!is_coverable(question)) return std::nullopt;
  return CoverSearch(table, question).run(low, high, work);
}

}  // namespace isochron
