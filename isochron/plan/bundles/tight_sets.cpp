// Sets that fill a group, chosen by annealing.
//
// Groups of two sizes: the wider ones cost traffic, but hold more bundles, of which more sets fill
// them. What has no set is a fluid on wide groups that takes its area, and some more since it will
// leave holes: the more, the larger its bundles are, since a wide group is full only with three of
// them or more. Within T a set takes its group whole, and so saves what its bundles would take of
// the fluid, less the time of the group. The sets that save most together are wanted: a new one
// breaks up the sets that had its bundles. Narrow ones are drawn from a list, of two the one that
// saves more, and as many of one or two bundles as of more, of which there are more sets; wide
// ones bundle by bundle, the last of them such that little time is left. All that is saved makes T
// shorter, and sets are chosen again for that.

#include "isochron/plan/bundles/tight_sets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

// What the fluid takes beside its area, in parts: more on few groups, which have less to choose
// from, and not always the same.
double holes(std::int32_t num_groups, Random& random) {
  return 0.003 + (0.5 + 2.5 * random.unit()) / num_groups / num_groups;
}
// And what it takes more of bundles above 0.3 of a wide group, less of others, in parts of the
// difference: about the prices that the linear program of all sets has for them on wide groups.
constexpr double lean = 0.01;

class TightSearch {
 public:
  TightSearch(const BundleTable& table, const TightQuestion& question, Nanoseconds aim,
              Random& random)
      : table_(table),
        question_(question),
        random_(random),
        area_left_(static_cast<double>(question.taken)),
        total_(area_left_),
        target_(static_cast<double>(aim)),
        set_of_(question.bundles.size(), none) {
    const double hole = holes(num_groups(), random);
    Tokens tokens = 0;
    for (const BundleId bundle : question.bundles) {
      const BlockUse& use = table.use(question.level + 1, bundle);
      tokens += use.tokens;
      const double area = ratio() * static_cast<double>(use.cost);
      area_.push_back(area);
      area_left_ += area;
      fluid_.push_back((1 + hole) * area + lean * (area - 0.3 * ratio() * target_));
      total_ += fluid_.back();
    }
    // As many micro-batches on the wide groups as their tokens take if all is even.
    const Tokens room = table.capacity() * table.size(question.level) * num_groups();
    const auto num_slots = std::max<Tokens>(1, (tokens + room - 1) / std::max<Tokens>(1, room));
    wide_fixed_ = static_cast<double>(num_slots * table.fixed(question.level + 1));
    sizes_ = {sorted(0, 1), sorted(1, ratio())};
  }

  std::vector<TightSets> run(std::int64_t num_trials) {
    constexpr int num_rounds = 12;
    std::vector<TightSets> choices;
    for (int round = 0; round < num_rounds; ++round) {
      // The first target is a guess.
      if (round < 2) list_narrow();
      // What is taken with even odds, in parts of what a full set saves.
      anneal(num_trials / num_rounds, round == 0 ? 0.3 : 0.1);
      choices.push_back(chosen());
      retarget();
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const TightSets& a, const TightSets& b) { return a.time < b.time; });
    return choices;
  }

 private:
  static constexpr std::size_t max_members = 5;
  static constexpr std::size_t none = ~std::size_t{0};
  using Place = std::uint32_t;  // in the bundles of the question

  struct Size {  // of groups
    std::int32_t level = 0;
    double num_groups = 1;  // narrow ones that one takes
    double fixed = 0;
    double traffic = 0;         // what the fluid costs more, at most, in parts
    std::vector<double> costs;  // of bundles that fit, ascending
    std::vector<Place> places;  // of these
    double width = 1;
    std::vector<std::size_t> num_below;  // costs less than so many widths
  };
  struct Set {
    std::array<Place, max_members> places = {};
    std::uint32_t count = 0;
    const Size* size = nullptr;
    double fluid = 0;      // of its bundles
    Nanoseconds time = 0;  // of a narrow set

    [[nodiscard]] std::span<const Place> members() const { return {places.data(), count}; }
    [[nodiscard]] bool has(Place place) const {
      return std::find(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                       place) != places.begin() + static_cast<std::ptrdiff_t>(count);
    }
  };

  [[nodiscard]] double ratio() const {
    return static_cast<double>(table_.size(question_.level + 1)) / table_.size(question_.level);
  }
  [[nodiscard]] std::int32_t num_groups() const {
    return question_.num_groups + question_.num_other_groups;
  }

  [[nodiscard]] Size sorted(std::int32_t above, double num_narrow) const {
    Size size{.level = question_.level + above,
              .num_groups = num_narrow,
              .fixed = static_cast<double>(table_.fixed(question_.level + above)),
              .costs = {},
              .places = {},
              .num_below = {}};
    std::vector<std::pair<double, Place>> order;
    for (std::size_t i = 0; i < question_.bundles.size(); ++i) {
      const auto place = static_cast<Place>(i);
      const BundleId bundle = question_.bundles[place];
      if (!table_.fits(size.level, bundle)) continue;
      const auto cost = static_cast<double>(table_.use(size.level, bundle).cost);
      order.emplace_back(cost, place);
      if (cost > 0) size.traffic = std::max(size.traffic, fluid_[place] / (num_narrow * cost) - 1);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [cost, place] : order) {
      size.costs.push_back(cost);
      size.places.push_back(place);
    }
    if (order.empty()) return size;
    // Costs are looked up often: about one in a width.
    const std::size_t num_widths = 2 * order.size();
    size.width = std::max(1.0, size.costs.back() / static_cast<double>(num_widths));
    for (std::size_t i = 0; i <= num_widths; ++i) {
      const auto first = std::lower_bound(size.costs.begin(), size.costs.end(),
                                          static_cast<double>(i) * size.width);
      size.num_below.push_back(static_cast<std::size_t>(first - size.costs.begin()));
    }
    return size;
  }

  void add(Set& set, Place place) const {
    set.places[set.count++] = place;
    set.fluid += fluid_[place];
  }

  [[nodiscard]] double gain(const Set& set) const {
    return set.fluid + set.size->num_groups * (wide_fixed_ - target_);
  }

  [[nodiscard]] bool is_in_time(const Set& set) const {
    const Nanoseconds known = set.time > 0 ? set.time : time(set);
    return static_cast<double>(known) <= target_;
  }

  [[nodiscard]] Nanoseconds time(const Set& set) const {
    BlockUse all;
    for (const Place place : set.members()) {
      const BlockUse& use = table_.use(set.size->level, question_.bundles[place]);
      all.cost += use.cost;
      all.tokens += use.tokens;
      all.sequences += use.sequences;
    }
    return table_.time(set.size->level, all);
  }

  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>((random_.next() >> 32) * count >> 32);
  }

  // One of the `count` cheapest, rather one that has no set.
  std::size_t pick_loose(const Size& size, std::size_t count) {
    std::size_t i = pick(count);
    for (int more = 0; more < 2 && set_of_[size.places[i]] != none; ++more) i = pick(count);
    return i;
  }

  static std::size_t num_within(const Size& size, double cost) {
    if (cost < size.costs.front()) return 0;
    if (cost >= size.costs.back()) return size.costs.size();
    std::size_t count = size.num_below[static_cast<std::size_t>(cost / size.width)];
    while (size.costs[count] <= cost) ++count;
    return count;
  }

  // Sets of a few bundles that might save something on a narrow group, some thousands.
  void list_narrow() {
    for (auto& list : narrow_) list.clear();
    num_pairs_ = 0;
    const Size& size = sizes_[0];
    if (!size.costs.empty()) list_with({.size = &size}, 0, target_ - size.fixed);
  }

  // Those that have some and more, from `first` on, in the time that is left.
  void list_with(const Set& some, std::size_t first, double left) {
    constexpr std::size_t most_pairs = 8192;  // to which a third is looked up
    constexpr std::size_t most_sets = 16384;  // of one list
    constexpr std::size_t few = 40;           // of which sets of four are listed, too
    const Size& size = *some.size;
    const std::vector<double>& costs = size.costs;
    auto& list = narrow_[some.count < 2 ? 0 : 1];
    std::size_t last = std::max(first, num_within(size, left - most_left(some.count + 1)));
    for (; last < costs.size() && costs[last] <= left && list.size() < most_sets; ++last) {
      Set set = some;
      add(set, size.places[last]);
      set.time = time(set);
      if (gain(set) > 0 && is_in_time(set)) list.push_back(set);
    }
    if (some.count + 1 == (costs.size() <= few ? 4 : 3)) return;
    const std::size_t stride = 1 + costs.size() * (costs.size() - 1) / 2 / most_pairs;
    for (std::size_t i = first; i < costs.size() && 2 * costs[i] <= left; ++i) {
      if (some.count == 1 && num_pairs_++ % stride != 0) continue;
      Set more = some;
      add(more, size.places[i]);
      list_with(more, i + 1, left - costs[i]);
    }
  }

  // The time that a listed set of so many bundles leaves at most.
  [[nodiscard]] double most_left(std::size_t num_members) const {
    const auto count = static_cast<double>(sizes_[0].costs.size());
    const double room = target_ - sizes_[0].fixed;
    const double hole = sizes_[0].traffic * room + wide_fixed_;  // more than one that saves
    if (num_members < 2) return hole;
    return num_members == 2 ? std::min(hole, room * 10'000 / (count * count))
                            : std::min(hole / 2, room * 2 / count);
  }

  // A set that might save something; empty if the draw leads to none.
  Set drawn() {
    const std::size_t kind = pick(8);
    if (kind < 2) return drawn_wide();
    const std::vector<Set>& sets = narrow_[kind < 5 ? 0 : 1];
    if (sets.empty()) return {};
    const Set& one = sets[pick(sets.size())];
    const Set& other = sets[pick(sets.size())];
    return other.fluid > one.fluid && is_in_time(other) ? other : one;
  }

  Set drawn_wide() {
    // How many bundles there are beside the last.
    constexpr std::array<std::size_t, 8> num_others = {1, 2, 2, 3, 3, 3, 3, 4};
    const Size& size = sizes_[1];
    if (size.costs.empty()) return {};
    double room = target_ - size.fixed;
    const double hole = size.traffic * room + wide_fixed_;  // more than a set leaves
    Set set{.size = &size};
    for (std::size_t more = num_others[pick(8)]; more > 0; --more) {
      const std::size_t count = num_within(size, room - size.costs.front());
      if (count == 0) return {};
      const std::size_t i = pick_loose(size, count);
      if (set.has(size.places[i])) return {};
      add(set, size.places[i]);
      room -= size.costs[i];
    }
    const std::size_t end = num_within(size, room);
    const std::size_t first = num_within(size, room - hole);
    if (first == end) return {};
    const Place last = size.places[first + pick(end - first)];
    if (set.has(last)) return {};
    add(set, last);
    return set;
  }

  void anneal(std::int64_t num_trials, double hot) {
    const double most = sizes_[0].traffic * target_ + wide_fixed_;
    double heat = 0;
    for (std::int64_t trial = 0; trial < num_trials; ++trial) {
      if (trial % 64 == 0) {
        const double cooled = static_cast<double>(trial) / static_cast<double>(num_trials);
        heat = most * (hot * halved(10 * cooled) + 0.005);
      }
      const Set set = drawn();
      if (set.count == 0) continue;
      const double more = gain(set);
      if (more <= 0) continue;
      std::array<std::size_t, max_members> broken = {};
      std::size_t num_broken = 0;
      double lost = 0;
      double num_freed = 0;
      for (const Place place : set.members()) {
        const std::size_t other = set_of_[place];
        const auto end = broken.begin() + static_cast<std::ptrdiff_t>(num_broken);
        if (other == none || std::find(broken.begin(), end, other) != end) continue;
        broken[num_broken++] = other;
        lost += gain(sets_[other]);
        num_freed += sets_[other].size->num_groups;
      }
      if (num_used_ - num_freed + set.size->num_groups > question_.num_groups) continue;
      if (lost > more && random_.unit() >= halved((lost - more) / heat)) continue;
      if (!is_in_time(set)) continue;
      for (std::size_t i = 0; i < num_broken; ++i) drop(broken[i]);
      insert(set);
    }
  }

  void drop(std::size_t set) {
    for (const Place place : sets_[set].members()) {
      set_of_[place] = none;
      area_left_ += area_[place];
    }
    num_used_ -= sets_[set].size->num_groups;
    sets_[set] = {};
    unused_.push_back(set);
  }

  void insert(const Set& set) {
    if (unused_.empty()) {
      unused_.push_back(sets_.size());
      sets_.emplace_back();
    }
    const std::size_t spot = unused_.back();
    unused_.pop_back();
    for (const Place place : set.members()) {
      set_of_[place] = spot;
      area_left_ -= area_[place];
    }
    num_used_ += set.size->num_groups;
    sets_[spot] = set;
  }

  // The step with the sets at hand.
  [[nodiscard]] Nanoseconds promised() const {
    Nanoseconds latest = 0;
    for (const Set& set : sets_) {
      if (set.count > 0) latest = std::max(latest, time(set));
    }
    const double num_left = num_groups() - num_used_;
    if (num_left < 1) return area_left_ > 0.5 ? std::numeric_limits<Nanoseconds>::max() : latest;
    return std::max(latest, static_cast<Nanoseconds>(area_left_ / num_left + wide_fixed_));
  }

  [[nodiscard]] TightSets chosen() const {
    TightSets answer{.narrow = {}, .wide = {}, .time = promised()};
    for (const Set& set : sets_) {
      if (set.count == 0) continue;
      auto& sets = set.size == sizes_.data() ? answer.narrow : answer.wide;
      sets.emplace_back();
      for (const Place place : set.members()) sets.back().push_back(question_.bundles[place]);
    }
    return answer;
  }

  // The target that all groups would reach with what the sets save now.
  void retarget() {
    double need = total_;
    for (const Set& set : sets_) {
      if (set.count > 0) need -= gain(set);
    }
    target_ = need / num_groups() + wide_fixed_;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].count == 0) continue;
      if (gain(sets_[i]) <= 0 || !is_in_time(sets_[i])) drop(i);
    }
  }

  const BundleTable& table_;
  const TightQuestion& question_;
  Random& random_;
  std::vector<double> area_;   // of each bundle on wide groups, in time of a narrow one
  double area_left_;           // of what has no set, and what is taken
  std::vector<double> fluid_;  // what each bundle takes as a fluid
  double total_;               // of all of them, and what is taken
  double wide_fixed_ = 0;      // of the micro-batches of a group with fluid
  std::array<Size, 2> sizes_;
  std::array<std::vector<Set>, 2> narrow_;  // that are listed, of one or two bundles, of more
  std::size_t num_pairs_ = 0;               // that others were looked up to
  double target_;
  std::vector<std::size_t> set_of_;  // of each bundle; none: fluid
  std::vector<Set> sets_;
  std::vector<std::size_t> unused_;  // of these
  double num_used_ = 0;              // narrow groups that sets take
};

}  // namespace

std::vector<TightSets> find_tight_sets(const BundleTable& table, const TightQuestion& question,
                                       Nanoseconds aim, std::int64_t num_trials, Random& random) {
  return TightSearch(table, question, aim, random).run(num_trials);
}

}  // namespace isochron
