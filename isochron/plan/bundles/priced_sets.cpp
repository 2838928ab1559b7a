// Sets that fill a group, of those that prices leave.
//
// Of all sets of bundles that fill a group few are part of a good step: at prices at which no group
// holds much more than it is worth, a set that is worth less loses the difference, and a good step
// loses little in all. The best sets are listed, and annealing chooses among them: one is drawn and
// breaks up those that have its bundles. What has no set is a fluid on wide groups, as in
// tight_sets.cpp. Then the loose bundles get sets too, also worse ones, which are listed when a
// bundle is loose for the first time: a penalty on what is loose rises while there is room, and
// falls while there is none, until the last few fit into what is left. If they never do, the same
// begins again for a longer step.

#include "isochron/plan/bundles/priced_sets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

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
constexpr double infinite = std::numeric_limits<double>::infinity();

class PricedSets {
 public:
  PricedSets(const BundleTable& table, const TightQuestion& question,
             std::span<const Nanoseconds> begun, std::span<const double> prices, Nanoseconds aim,
             Random& random)
      : table_(table), question_(question), begun_(begun), random_(random), aim_(aim) {
    const auto count = static_cast<std::size_t>(table.num_bundles());
    state_.set_of.assign(count, none);
    state_.place.assign(count, 0);
    sets_with_.resize(count);
    has_all_.assign(count, false);
    fluid_.assign(count, 0);
    const auto room = static_cast<double>(aim_ - table.fixed(question.level + 1));
    for (const BundleId bundle : question.bundles) {
      const BlockUse& use = table.use(question.level + 1, bundle);
      fluid_[at(bundle)] = ratio() * static_cast<double>(use.cost) / room;
      state_.loosen(bundle);
      state_.fluid += fluid_[at(bundle)];
    }
    sizes_ = {sized(0, prices), sized(1, prices)};
  }

  // Begins with sets that are done in time.
  void begin_with(const TightSets& sets) {
    for (const auto& [size, chosen] :
         {std::pair(&sizes_[0], &sets.narrow), std::pair(&sizes_[1], &sets.wide)}) {
      for (const TightSet& set : *chosen) {
        std::array<const Item*, max_members> items = {};
        for (std::size_t i = 0; i < set.size(); ++i) {
          items[i] = &size->items[size->spots[at(set[i])]];
        }
        add(*size, std::span(items).first(set.size()));
        put(static_cast<std::uint32_t>(sets_.size() - 1));
      }
    }
  }

  std::optional<TightSets> run(double hot, std::int64_t num_trials, std::int64_t num_last_trials) {
    list_best();
    if (sets_.empty()) return std::nullopt;
    anneal(hot, num_trials);
    const double spare = room_left() - state_.fluid;
    // What the last ones are going to waste.
    const double enough = 0.03 + 0.005 * static_cast<double>(state_.loose.size());
    missing_ = std::max(0.05, enough - spare);
    if (spare < enough) return std::nullopt;
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
      (sets_[k].is_wide ? sets.wide : sets.narrow).emplace_back(members.begin(), members.end());
    }
    return sets;
  }
  [[nodiscard]] double missing() const { return missing_; }

 private:
  static constexpr std::size_t max_members = 3;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Set {
    std::array<BundleId, max_members> bundles = {};
    std::uint8_t count = 0;
    bool is_wide = false;
    float groups = 1;  // narrow ones that it takes
    float fluid = 0;   // of its bundles
    float worth = 0;   // as well

    [[nodiscard]] std::span<const BundleId> members() const { return {bundles.data(), count}; }
  };
  struct Item {
    double cost = 0;    // in groups of the size
    double worth = 0;   // as well
    double excess = 0;  // of the worth over the cost
    BundleId bundle = 0;
  };
  struct Size {  // of groups
    std::int32_t level = 0;
    double num_narrow = 1;           // groups that one takes
    std::vector<Item> items;         // by cost
    std::vector<double> excess;      // of the cheapest so many, the most worth beyond the cost
    std::vector<std::size_t> spots;  // of bundles among them
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
  [[nodiscard]] double num_left() const { return question_.num_groups - state_.num_used; }
  [[nodiscard]] bool is_long(BundleId bundle) const {
    return !table_.fits(question_.level, bundle) || table_.time(question_.level, bundle) > aim_;
  }

  [[nodiscard]] Size sized(std::int32_t above, std::span<const double> prices) const {
    Size size{.level = question_.level + above,
              .num_narrow = above == 0 ? 1 : ratio(),
              .items = {},
              .excess = {-1},
              .spots = std::vector<std::size_t>(fluid_.size(), fluid_.size())};
    const auto room = static_cast<double>(aim_ - table_.fixed(size.level));
    for (const BundleId bundle : question_.bundles) {
      if (!table_.fits(size.level, bundle)) continue;
      const double cost = static_cast<double>(table_.use(size.level, bundle).cost) / room;
      if (cost > 1) continue;
      const double worth = std::min(prices[at(bundle)] / table_.size(size.level),
                                    fluid_[at(bundle)] / size.num_narrow);
      size.items.push_back(
          {.cost = cost, .worth = worth, .excess = worth - cost, .bundle = bundle});
    }
    std::sort(size.items.begin(), size.items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.cost, a.bundle) < std::pair(b.cost, b.bundle);
    });
    for (std::size_t i = 0; i < size.items.size(); ++i) {
      const Item& item = size.items[i];
      size.excess.push_back(std::max(size.excess.back(), item.excess));
      size.spots[at(item.bundle)] = i;
    }
    return size;
  }

  void add(const Size& size, std::span<const Item* const> members) {
    Set set{.is_wide = size.level > question_.level, .groups = static_cast<float>(size.num_narrow)};
    BlockUse all;
    for (const Item* item : members) {
      set.worth += static_cast<float>(item->worth);
      set.bundles[set.count++] = item->bundle;
      set.fluid += static_cast<float>(fluid_[at(item->bundle)]);
      const BlockUse& use = table_.use(size.level, item->bundle);
      all.cost += use.cost;
      all.tokens += use.tokens;
      all.sequences += use.sequences;
    }
    if (table_.time(size.level, all) > aim_) return;
    for (const Item* item : members) {
      sets_with_[at(item->bundle)].push_back(static_cast<std::uint32_t>(sets_.size()));
    }
    sets_.push_back(set);
  }

  // Adds the sets with a bundle, and items before `end`, that are worth at least so much of a group
  // and less than `most`.
  void list(const Size& size, BundleId bundle, std::size_t end, double least, double most) {
    const std::vector<Item>& items = size.items;
    const Item& first = items[size.spots[at(bundle)]];
    const auto is_asked = [&](double worth) { return worth >= least && worth < most; };
    std::array<const Item*, max_members> members = {&first};
    if (is_asked(first.worth)) add(size, std::span(members).first(1));
    std::size_t num_third = 0;
    for (std::size_t j = end; j-- > 0;) {
      const Item& second = items[j];
      // Worth beyond the cost makes up for what is not: a set costs no more than a group.
      const double both = first.excess + second.excess;
      if (both + std::max(0.0, size.excess[j]) < least - 1) continue;
      const double left = 1 - first.cost - second.cost;
      if (second.bundle == bundle || left < 0) continue;
      const double worth = first.worth + second.worth;
      members[1] = &second;
      if (is_asked(worth)) add(size, std::span(members).first(2));
      // A third one that costs at most what is left and is worth what is missing.
      while (num_third < items.size() && items[num_third].cost <= left) ++num_third;
      std::size_t k = std::min(num_third, j);
      if (both + size.excess[k] < least - 1) continue;
      const double least_cost = least - worth - size.excess[k];
      while (k-- > 0 && items[k].cost >= least_cost) {
        if (items[k].bundle != bundle && is_asked(worth + items[k].worth)) {
          members[2] = &items[k];
          add(size, members);
        }
      }
    }
  }

  // A set is listed with the bundle that costs most.
  void list_best() {
    for (const Size& size : sizes_) {
      for (std::size_t i = 0; i < size.items.size(); ++i) {
        const BundleId bundle = size.items[i].bundle;
        list(size, bundle, i, 1 - best_width(size, bundle), infinite);
      }
    }
  }

  [[nodiscard]] double best_width(const Size& size, BundleId dearest) const {
    if (size.level == question_.level) return narrow_widths.best;
    return is_long(dearest) ? width_of_long : wide_widths.best;
  }

  // All others with a bundle.
  void list_all(BundleId bundle) {
    for (const Size& size : sizes_) {
      if (size.spots[at(bundle)] >= size.items.size()) continue;
      const Widths& widths = size.level == question_.level ? narrow_widths : wide_widths;
      const double best = 1 - widths.best;
      list(size, bundle, size.items.size(), 1 - widths.all, best);
    }
    has_all_[at(bundle)] = true;
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
      // Rather one with a loose bundle.
      if (state_.loose.empty() || pick(10) < 3) {
        take(dearest_of(sets_.size(), [](std::size_t i) { return i; }), heat);
        continue;
      }
      const auto& with = sets_with_[at(state_.loose[pick(state_.loose.size())])];
      if (!with.empty())
        take(dearest_of(with.size(), [&](std::size_t i) { return with[i]; }), heat);
    }
  }

  // Of three sets that are drawn.
  template <class SetAt>
  std::uint32_t dearest_of(std::size_t count, SetAt set_at) {
    auto dearest = static_cast<std::uint32_t>(set_at(pick(count)));
    for (int more = 0; more < 2; ++more) {
      const auto other = static_cast<std::uint32_t>(set_at(pick(count)));
      if (sets_[other].worth > sets_[dearest].worth) dearest = other;
    }
    return dearest;
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
      if (!has_all_[at(bundle)]) list_all(bundle);
      const auto& with = sets_with_[at(bundle)];
      if (with.empty() || !take(with[pick(with.size())], heat)) continue;
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
  std::array<Size, 2> sizes_;
  std::vector<Set> sets_;
  std::vector<std::vector<std::uint32_t>> sets_with_;  // each bundle
  std::vector<bool> has_all_;                          // each bundle, of its sets
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
    auto found = search.run(known ? cool : hot, num_trials / (known ? 2 : 1), num_trials / 20);
    if (found) return found;
    known = search.chosen();
    // More than what is missing: another aim takes longer than the step gets.
    above += 1.6 * search.missing() / question.num_groups;
  }
  return std::nullopt;
}

}  // namespace isochron
