// Sets that fill a group, of those that prices leave.
//
// Of all sets of bundles that fill a group few are part of a good step: at prices at which no group
// holds much more than it is worth, a set that is worth less loses the difference, and a good step
// loses little in all. The best sets are listed, and annealing chooses among them: one with a loose
// bundle is drawn and breaks up those that have its others. What has no set is a fluid on wide
// groups, as in tight_sets.cpp. Then the loose bundles get sets too, also worse ones, which are
// listed when a bundle is loose for the first time: a penalty on what is loose rises while there is
// room, and falls while there is none, until the last few fit into what is left. If they never do,
// the same begins again for a longer step.

#include "isochron/plan/bundles/priced_sets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "isochron/plan/bundles/set_list.h"
#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

// How much of a group a set may miss in worth, of the best ones and of all.
struct Widths {
  double best = 0;
  double all = 0;
};
constexpr Widths narrow_widths{.best = 0.002, .all = 0.004};
constexpr Widths wide_widths{.best = 0.002, .all = 0.007};
constexpr double width_of_long = 0.005;  // of the best with a bundle that needs a wide group

class PricedSets {
 public:
  PricedSets(const BundleTable& table, const TightQuestion& question,
             std::span<const Nanoseconds> begun, std::span<const double> prices, Nanoseconds aim,
             Random& random)
      : table_(table),
        question_(question),
        begun_(begun),
        random_(random),
        aim_(aim),
        fluid_(fluid_on_wide_groups()),
        narrow_(table, question.level, 1, question.bundles, prices, fluid_, aim),
        wide_(table, question.level + 1, ratio(), question.bundles, prices, fluid_, aim) {
    const auto count = static_cast<std::size_t>(table.num_bundles());
    state_.set_of.assign(count, none);
    state_.place.assign(count, 0);
    others_.resize(count);
    for (const BundleId bundle : question.bundles) {
      state_.loosen(bundle);
      state_.fluid += fluid_[at(bundle)];
    }
  }

  // Begins with sets that are done in time.
  void begin_with(const TightSets& sets) {
    for (const auto& [list, chosen] :
         {std::pair(&narrow_, &sets.narrow), std::pair(&wide_, &sets.wide)}) {
      for (const TightSet& set : *chosen) {
        sets_.push_back(list->set_of(set));
        put(static_cast<std::uint32_t>(sets_.size() - 1));
      }
    }
  }

  std::optional<TightSets> run(double hot, std::int64_t num_trials, std::int64_t num_last_trials) {
    list_best();
    if (sets_.empty()) return std::nullopt;
    index_best();
    anneal(hot, num_trials);
    const double spare = room_left() - state_.fluid;
    // What the last ones are going to waste.
    const double enough = 0.03 + 0.005 * static_cast<double>(state_.loose.size());
    missing_ = std::max(0.05, enough - spare);
    if (spare < enough && !state_.loose.empty()) return std::nullopt;
    const State annealed = state_;
    if (settle(num_last_trials)) return with_rest(chosen());
    state_ = annealed;
    return std::nullopt;
  }

  // If run() found nothing: the sets for a part of the bundles, and narrow groups that the others
  // might have needed.
  [[nodiscard]] TightSets chosen() const {
    TightSets sets{.narrow = {}, .wide = {}, .time = aim_};
    for (std::uint32_t k = 0; k < sets_.size(); ++k) {
      const auto members = sets_[k].members();
      if (state_.set_of[at(members[0])] != k) continue;
      (sets_[k].is_wide() ? sets.wide : sets.narrow).emplace_back(members.begin(), members.end());
    }
    return sets;
  }
  [[nodiscard]] double missing() const { return missing_; }

 private:
  using Set = PricedSet;
  static constexpr std::size_t max_members = Set::max_members;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Listed {
    std::uint32_t set = 0;
    float worth = 0;
  };
  struct Others {  // sets that are worth less, one after the other
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    bool are_listed = false;
  };
  // Which sets are chosen.
  struct State {
    std::vector<std::uint32_t> set_of;  // of each bundle; none: it is loose
    std::vector<BundleId> loose;
    std::vector<std::size_t> place;  // of each bundle, there
    double fluid = 0;                // of all loose ones
    double num_used = 0;             // narrow groups

    void loosen(BundleId bundle) {
      set_of[at(bundle)] = none;
      place[at(bundle)] = loose.size();
      loose.push_back(bundle);
    }
    void fix(BundleId bundle, std::uint32_t set) {
      set_of[at(bundle)] = set;
      loose[place[at(bundle)]] = loose.back();
      place[at(loose.back())] = place[at(bundle)];
      loose.pop_back();
    }
  };

  static std::size_t at(BundleId bundle) { return static_cast<std::size_t>(bundle); }

  [[nodiscard]] double ratio() const {
    return static_cast<double>(table_.size(question_.level + 1)) / table_.size(question_.level);
  }
  [[nodiscard]] std::vector<double> fluid_on_wide_groups() const {
    std::vector<double> fluid(static_cast<std::size_t>(table_.num_bundles()), 0);
    const auto room = static_cast<double>(aim_ - table_.fixed(question_.level + 1));
    for (const BundleId bundle : question_.bundles) {
      const BlockUse& use = table_.use(question_.level + 1, bundle);
      fluid[at(bundle)] = ratio() * static_cast<double>(use.cost) / room;
    }
    return fluid;
  }
  [[nodiscard]] double num_left() const { return question_.num_groups - state_.num_used; }
  [[nodiscard]] bool is_long(BundleId bundle) const {
    return !table_.fits(question_.level, bundle) || table_.time(question_.level, bundle) > aim_;
  }

  // A set is listed with the bundle that costs most.
  void list_best() {
    for (const BundleId bundle : question_.bundles) {
      if (narrow_.has(bundle)) narrow_.add_of_dearest(bundle, 1 - narrow_widths.best, sets_);
    }
    for (const BundleId bundle : question_.bundles) {
      if (!wide_.has(bundle)) continue;
      wide_.add_of_dearest(bundle, 1 - (is_long(bundle) ? width_of_long : wide_widths.best), sets_);
    }
  }

  // By bundle.
  void index_best() {
    best_begin_.assign(others_.size() + 1, 0);
    for (const Set& set : sets_) {
      for (const BundleId bundle : set.members()) ++best_begin_[at(bundle) + 1];
    }
    std::partial_sum(best_begin_.begin(), best_begin_.end(), best_begin_.begin());
    best_.resize(best_begin_.back());
    std::vector<std::uint32_t> end(best_begin_.begin(), best_begin_.end() - 1);
    const auto index = [&](auto is_next) {
      for (std::uint32_t k = 0; k < sets_.size(); ++k) {
        if (!is_next(sets_[k].count)) continue;
        for (const BundleId bundle : sets_[k].members()) {
          best_[end[at(bundle)]++] = {.set = k, .worth = sets_[k].worth};
        }
      }
    };
    index([](std::size_t count) { return count < max_members; });
    num_small_.clear();
    for (std::size_t i = 0; i < end.size(); ++i) num_small_.push_back(end[i] - best_begin_[i]);
    index([](std::size_t count) { return count == max_members; });
  }

  // The best with a bundle.
  [[nodiscard]] std::span<const Listed> best_with(BundleId bundle) const {
    return std::span(best_).subspan(best_begin_[at(bundle)],
                                    best_begin_[at(bundle) + 1] - best_begin_[at(bundle)]);
  }

  // All others with a bundle.
  void list_others(BundleId bundle) {
    others_[at(bundle)].first = static_cast<std::uint32_t>(sets_.size());
    for (const auto& [list, widths] :
         {std::pair(&narrow_, &narrow_widths), std::pair(&wide_, &wide_widths)}) {
      if (list->has(bundle)) list->add_with(bundle, 1 - widths->all, 1 - widths->best, sets_);
    }
    others_[at(bundle)].last = static_cast<std::uint32_t>(sets_.size());
    others_[at(bundle)].are_listed = true;
  }

  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>((random_.next() >> 32) * count >> 32);
  }

  // What a set saves against the fluid.
  [[nodiscard]] double gain(const Set& set) const {
    return static_cast<double>(set.fluid) * (1 + holes_) - static_cast<double>(set.groups);
  }

  // Takes a set and gives up those that have its bundles, if that is better or by chance.
  bool take(std::uint32_t drawn, double heat) {
    const Set& set = sets_[drawn];
    std::array<std::uint32_t, max_members> broken = {};
    std::size_t num_broken = 0;
    double lost = 0;
    double num_freed = 0;
    for (const BundleId bundle : set.members()) {
      const std::uint32_t other = state_.set_of[at(bundle)];
      const auto end = broken.begin() + static_cast<std::ptrdiff_t>(num_broken);
      if (other == none || std::find(broken.begin(), end, other) != end) continue;
      if (other == drawn) return false;
      broken[num_broken++] = other;
      lost += gain(sets_[other]);
      num_freed += static_cast<double>(sets_[other].groups);
    }
    const double num_used = state_.num_used - num_freed + static_cast<double>(set.groups);
    if (num_used > question_.num_groups) return false;
    const double worse = lost - gain(set);
    if (worse > 0 && random_.unit() >= halved(worse / heat)) return false;
    for (std::size_t i = 0; i < num_broken; ++i) {
      for (const BundleId bundle : sets_[broken[i]].members()) state_.loosen(bundle);
      state_.fluid += static_cast<double>(sets_[broken[i]].fluid);
    }
    state_.num_used -= num_freed;
    put(drawn);
    return true;
  }

  // Chooses a set of loose bundles.
  void put(std::uint32_t index) {
    const Set& set = sets_[index];
    for (const BundleId bundle : set.members()) state_.fix(bundle, index);
    state_.fluid -= static_cast<double>(set.fluid);
    state_.num_used += static_cast<double>(set.groups);
  }

  // What is lost with even odds at first, in narrow groups.
  void anneal(double hot, std::int64_t num_trials) {
    double heat = 0;
    for (std::int64_t trial = 0; trial < num_trials; ++trial) {
      if (trial % 64 == 0) {
        heat = hot * halved(6 * static_cast<double>(trial) / static_cast<double>(num_trials));
      }
      // One with a loose bundle; where few are loose, all of their sets are soon known.
      constexpr std::size_t few = 8;
      const std::size_t num_loose = state_.loose.size();
      if (num_loose == 0) return;
      if (num_loose < few && pick(10) < 3) {
        take(dearest_of(best_), heat);
        continue;
      }
      const BundleId bundle = state_.loose[pick(num_loose)];
      auto with = best_with(bundle);
      // Most of the larger ones would break up several sets.
      if (const std::size_t num_small = num_small_[at(bundle)]; num_small > 0 && pick(4) == 0) {
        with = with.first(num_small);
      }
      if (!with.empty()) take(dearest_of(with), heat);
    }
  }

  // Of three sets that are drawn.
  std::uint32_t dearest_of(std::span<const Listed> sets) {
    Listed dearest = sets[pick(sets.size())];
    for (int more = 0; more < 2; ++more) {
      const Listed other = sets[pick(sets.size())];
      if (other.worth > dearest.worth) dearest = other;
    }
    return dearest.set;
  }

  // Whether all bundles found their place.
  bool settle(std::int64_t num_trials) {
    constexpr double heat = 0.0008;
    constexpr double pace = 1.05;    // of the penalty
    constexpr double wanted = 0.03;  // groups that are not needed
    holes_ = first_holes;
    for (std::int64_t trial = 0; trial < num_trials; ++trial) {
      if (trial % 64 == 0) {
        const bool has_room = room_left() - state_.fluid > wanted;
        holes_ = std::clamp(has_room ? holes_ * pace : holes_ / pace, 0.004, 0.1);
      }
      if (state_.loose.empty()) return fits_rest();
      const BundleId bundle = state_.loose[pick(state_.loose.size())];
      if (!others_[at(bundle)].are_listed) list_others(bundle);
      const auto best = best_with(bundle);
      const Others& others = others_[at(bundle)];
      const std::size_t count = best.size() + (others.last - others.first);
      if (count == 0) continue;
      const std::size_t drawn = pick(count);
      const auto set = drawn < best.size()
                           ? best[drawn].set
                           : others.first + static_cast<std::uint32_t>(drawn - best.size());
      if (!take(set, heat)) continue;
      if (fits_rest()) return true;
    }
    return false;
  }

  // For loose bundles, in narrow groups.
  [[nodiscard]] double room_left() const {
    double room = num_left();
    for (const Nanoseconds time : begun_) {
      room += ratio() * (1 - static_cast<double>(time) / static_cast<double>(aim_));
    }
    return room;
  }

  // Deals few loose bundles out to what is left, the largest first to the group that is done first:
  // wide groups, those that have begun, and perhaps a narrow one. Whether all are done in time.
  bool fits_rest() {
    constexpr std::size_t few = 10;
    if (state_.loose.size() > few) return false;
    const auto num_free = static_cast<std::size_t>(num_left() / ratio());
    const auto num_narrow =
        static_cast<std::size_t>(num_left() - static_cast<double>(num_free) * ratio());
    num_rest_wide_ = num_free + begun_.size();
    rest_.assign(num_rest_wide_ + num_narrow, {});
    std::vector<BlockUse> uses(rest_.size());
    std::vector<BundleId> order = state_.loose;
    std::sort(order.begin(), order.end(), [&](BundleId a, BundleId b) {
      return std::pair(-fluid_[at(a)], a) < std::pair(-fluid_[at(b)], b);
    });
    for (const BundleId bundle : order) {
      Nanoseconds least = aim_ + 1;
      std::size_t best = 0;
      BlockUse best_use;
      for (std::size_t k = 0; k < rest_.size(); ++k) {
        const std::int32_t level = question_.level + (k < num_rest_wide_ ? 1 : 0);
        if (!table_.fits(level, bundle)) continue;
        const BlockUse& use = table_.use(level, bundle);
        const BlockUse with{.cost = uses[k].cost + use.cost,
                            .tokens = uses[k].tokens + use.tokens,
                            .sequences = uses[k].sequences + use.sequences};
        const bool has_begun = k >= num_free && k < num_rest_wide_;
        const Nanoseconds time = table_.time(level, with) + (has_begun ? begun_[k - num_free] : 0);
        if (time >= least) continue;
        least = time;
        best = k;
        best_use = with;
      }
      if (least > aim_) return false;
      rest_[best].push_back(bundle);
      uses[best] = best_use;
    }
    return true;
  }

  [[nodiscard]] TightSets with_rest(TightSets sets) const {
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      (k < num_rest_wide_ ? sets.wide : sets.narrow).push_back(rest_[k]);
    }
    return sets;
  }

  static constexpr double first_holes = 0.008;

  const BundleTable& table_;
  const TightQuestion& question_;
  std::span<const Nanoseconds> begun_;
  Random& random_;
  Nanoseconds aim_;
  std::vector<double> fluid_;   // of each bundle, in narrow groups of the first time
  double holes_ = first_holes;  // what the fluid takes beside its area, in parts
  SetList narrow_;
  SetList wide_;
  std::vector<Set> sets_;
  std::vector<Listed> best_;  // of these, with each bundle
  std::vector<std::uint32_t> best_begin_;
  std::vector<std::size_t> num_small_;
  std::vector<Others> others_;  // with each bundle
  State state_;
  double missing_ = 0;
  // Of fits_rest():
  std::vector<TightSet> rest_;
  std::size_t num_rest_wide_ = 0;  // of these, the first ones
};

}  // namespace

std::optional<TightSets> find_priced_sets(const BundleTable& table, const TightQuestion& question,
                                          std::span<const Nanoseconds> before,
                                          const SoftPrices& prices, std::int64_t num_trials,
                                          Random& random) {
  constexpr double first_above = 0.0016;
  constexpr int num_aims = 5;
  constexpr double hot = 0.003;
  constexpr double cool = 0.002;
  std::vector<Nanoseconds> begun;
  std::copy_if(before.begin(), before.end(), std::back_inserter(begun),
               [](Nanoseconds time) { return time > 0; });
  std::sort(begun.begin(), begun.end());
  double above = first_above;
  std::optional<TightSets> known;
  for (int i = 0; i < num_aims; ++i) {
    const auto rise = static_cast<Nanoseconds>(above * static_cast<double>(prices.time));
    PricedSets search(table, question, begun, prices.prices, prices.time + rise, random);
    if (known) search.begin_with(*known);
    auto found = search.run(known ? cool : hot, num_trials / (known ? 6 : 3), num_trials / 20);
    if (found) return found;
    known = search.chosen();
    // More than what is missing, and each time more: another aim takes longer than the step gets.
    above += (1 + i) * 1.6 * search.missing() / question.num_groups;
  }
  return std::nullopt;
}

}  // namespace isochron
