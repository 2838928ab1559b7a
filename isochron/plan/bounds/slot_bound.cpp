// What a slot costs, shared out to what it holds.
//
// Every bundle gets a price: its least area over ranks, with its share of the fixed cost of a
// micro-batch (ShareRule), over all ranks. What runs in a slot is never worth more than the slot
// takes, so all prices together are a bound. A few long bundles raise it: a slot that holds one
// takes at least as long as it does, while the ranks beside it hold no more than their tokens are
// worth at best. All ways to put up to three of them into slots, in groups of their own or shared
// ones, are tried.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "isochron/core/radix_sort.h"
#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bounds/slot_prices.h"
#include "isochron/plan/default_effort.h"

namespace isochron {

namespace {

constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

// Prices of the bundles, and what any tokens of them are worth at best.
class Prices {
 public:
  Prices(const Problem& problem, const SizeRules& rules) {
    const auto count = static_cast<std::size_t>(problem.num_bundles());
    const double ranks = problem.num_ranks();
    price_.resize(count);
    tokens_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto bundle = static_cast<BundleId>(i);
      double least = std::numeric_limits<double>::infinity();
      double enough = std::numeric_limits<double>::infinity();
      for (const std::int32_t size : problem.sizes()) {
        if (!problem.fits(size, bundle)) continue;
        const double work = static_cast<double>(problem.least_cost(size, bundle)) * size;
        if (work >= enough && problem.grows_from(size)) break;  // later ones cost more still
        double shares = 0;
        for (const ItemId item : problem.items_of(bundle)) {
          shares += rules[static_cast<std::size_t>(size)](problem.tokens(size, item),
                                                          problem.capacity() * size);
        }
        const double area = work + static_cast<double>(problem.least_fixed(size)) * size * shares;
        least = std::min(least, area);
        enough = std::min(enough, area);
      }
      price_[i] = least / ranks;
      tokens_[i] = static_cast<double>(problem.least_tokens(bundle));
    }
    std::vector<std::uint64_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) {
      // Greater bits of what is not negative are a greater number.
      keys[i] = ~std::bit_cast<std::uint64_t>(price_[i] / tokens_[i]);
    }
    densest_first_ = ascending_positions(std::move(keys));
  }

  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double price : price_) sum += price;
    return sum;
  }
  [[nodiscard]] double price(std::size_t bundle) const { return price_[bundle]; }
  [[nodiscard]] std::span<const double> all() const { return price_; }

  // Leaves out some bundles, for worth().
  void set_aside(const std::vector<std::size_t>& bundles) {
    sums_.clear();
    double tokens = 0;
    double worth = 0;
    for (const std::int32_t position : densest_first_) {
      const auto i = static_cast<std::size_t>(position);
      if (std::find(bundles.begin(), bundles.end(), i) != bundles.end()) continue;
      tokens += tokens_[i];
      worth += price_[i];
      sums_.push_back({tokens, worth});
    }
  }

  // The most that bundles of so many tokens are worth: densest first, the last one in part.
  [[nodiscard]] double worth(double tokens) const {
    const auto end =
        std::lower_bound(sums_.begin(), sums_.end(), tokens,
                         [](const Sum& sum, double room) { return sum.tokens < room; });
    if (end == sums_.end()) return sums_.empty() ? 0 : sums_.back().worth;
    const Sum before = end == sums_.begin() ? Sum{} : *(end - 1);
    const double width = end->tokens - before.tokens;
    return before.worth +
           (width > 0 ? (end->worth - before.worth) * (tokens - before.tokens) / width : 0);
  }

 private:
  struct Sum {
    double tokens = 0;
    double worth = 0;
  };
  std::vector<double> price_;
  std::vector<double> tokens_;
  std::vector<std::int32_t> densest_first_;
  std::vector<Sum> sums_;
};

// For each size the rule by which the items whose smallest group has it make most micro-batches.
SizeRules best_rules(const Problem& problem) {
  const std::vector<ShareRule> rules = share_rules();
  const std::size_t num_sizes = static_cast<std::size_t>(problem.num_ranks()) + 1;
  std::vector<std::vector<double>> shares(rules.size(), std::vector<double>(num_sizes, 0));
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(bundle)];
    for (const ItemId item : problem.items_of(bundle)) {
      const Tokens tokens = problem.tokens(size, item);
      for (std::size_t r = 0; r < rules.size(); ++r) {
        shares[r][static_cast<std::size_t>(size)] += rules[r](tokens, problem.capacity() * size);
      }
    }
  }
  SizeRules best(num_sizes);
  std::vector<double> most(num_sizes, 0);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    for (const std::int32_t size : problem.sizes()) {
      const auto i = static_cast<std::size_t>(size);
      if (shares[r][i] <= most[i]) continue;
      most[i] = shares[r][i];
      best[i] = rules[r];
    }
  }
  return best;
}

constexpr std::size_t max_long = 3;  // bundles that are put into slots

// How many ways to put them there are tried: what takes a thousandth of the step at most.
std::int64_t num_tried_of(double step) {
  constexpr std::int64_t most = 40'000;
  constexpr std::int64_t least = 2000;
  const auto bound = static_cast<Nanoseconds>(step);
  return is_time(bound) ? std::clamp(bound / 40'000, least, most) : most;
}

// How many sums the program of prices gets: what takes a fourhundredth of the step at most.
std::int64_t num_sums_of(double step) {
  const auto bound = static_cast<Nanoseconds>(step);
  return is_time(bound) ? bound / 200 : std::numeric_limits<std::int64_t>::max();
}

// A long bundle on a group of one size.
struct Stay {
  double cost = 0;
  double latency = 0;  // of a micro-batch
  double tokens = 0;   // padded
  double size = 1;
};

// Long bundles that share a micro-batch.
struct LongGroup {
  double time = 0;  // without the fixed cost of a slot, with the latency
  double tokens = 0;
  double size = 1;
};

class SlotBound {
 public:
  SlotBound(const Problem& problem, const SizeRules& rules)
      : problem_(problem),
        prices_(problem, rules),
        ranks_(problem.num_ranks()),
        fixed_(static_cast<double>(problem.microbatch())),
        max_tried_(num_tried_of(prices_.total())) {}

  [[nodiscard]] const Prices& prices() const { return prices_; }

  double bound() {
    std::vector<std::pair<double, std::size_t>> by_work;  // negative: dearest first
    for (BundleId bundle = 0; bundle < problem_.num_bundles(); ++bundle) {
      if (problem_.items_of(bundle).size() > 1) continue;  // those may be in several slots
      by_work.emplace_back(-prices_.price(static_cast<std::size_t>(bundle)),
                           static_cast<std::size_t>(bundle));
    }
    const std::size_t num_long = std::min(by_work.size(), max_long);
    std::partial_sort(by_work.begin(), by_work.begin() + static_cast<std::ptrdiff_t>(num_long),
                      by_work.end());
    by_work.resize(num_long);
    double best = prices_.total();
    std::vector<std::size_t> chosen;
    num_tried_ = 1;
    for (const auto& [work, bundle] : by_work) {
      // Every way so far goes on with every stay of the next one.
      const auto num_stays = static_cast<std::int64_t>(problem_.sizes().size());
      if (num_tried_ * num_stays > max_tried_) break;
      chosen.push_back(bundle);
      stays_.push_back(stays_of(bundle));
      prices_.set_aside(chosen);
      double rest = prices_.total();
      for (const std::size_t x : chosen) rest -= prices_.price(x);
      // What those from here on take of all ranks at least.
      least_areas_.assign(chosen.size() + 1, 0);
      for (std::size_t i = chosen.size(); i-- > 0;) {
        double least = std::numeric_limits<double>::infinity();
        for (const Stay& stay : stays_[i]) least = std::min(least, stay.size * stay.cost);
        least_areas_[i] = least_areas_[i + 1] + least;
      }
      least_ = std::numeric_limits<double>::infinity();
      num_tried_ = 0;
      place_from(0, 0);
      if (num_tried_ > max_tried_) break;
      best = std::max(best, rest + least_);
    }
    return best;
  }

 private:
  struct Slot {
    double longest = 0;
    double size = 0;  // of the groups of its long bundles together
    double area = 0;  // of them, without latencies: those are paid for what joins them too
    std::array<LongGroup, max_long> groups = {};
    std::size_t num_groups = 0;
  };

  std::vector<Stay> stays_of(std::size_t bundle) const {
    std::vector<Stay> stays;
    const auto id = static_cast<BundleId>(bundle);
    for (const std::int32_t size : problem_.sizes()) {
      if (!problem_.fits(size, id)) continue;
      const Tokens tokens = problem_.tokens(size, problem_.items_of(id).front());
      stays.push_back(
          {.cost = static_cast<double>(problem_.least_cost(size, id)),
           .latency = static_cast<double>(problem_.least_fixed(size) - problem_.microbatch()),
           .tokens = static_cast<double>(tokens),
           .size = static_cast<double>(size)});
    }
    return stays;
  }

  // The slot with a bundle in one of its groups, or in a fresh one after the last.
  static Slot with(Slot slot, const Stay& stay, std::size_t place) {
    LongGroup& group = slot.groups[place];
    if (place == slot.num_groups) {
      group = {.time = stay.latency, .size = stay.size};
      slot.size += stay.size;
      slot.num_groups += 1;
    }
    group.time += stay.cost;
    group.tokens += stay.tokens;
    slot.longest = std::max(slot.longest, group.time);
    slot.area += stay.size * stay.cost;
    return slot;
  }

  bool admits(const Slot& slot, const Stay& stay, std::size_t place) const {
    if (place == slot.num_groups) return slot.size + stay.size <= ranks_;
    const LongGroup& group = slot.groups[place];
    return group.size == stay.size &&
           group.tokens + stay.tokens <= stay.size * static_cast<double>(problem_.capacity());
  }

  // All ways to put the long bundles from `index` on into the slots so far, or fresh ones, that may
  // be the cheapest: none costs less than the areas of the bundles, which are `area` so far.
  void place_from(std::size_t index, double area) {
    if ((area + least_areas_[index]) / ranks_ >= least_ || ++num_tried_ > max_tried_) return;
    if (index == stays_.size()) {
      double cost = 0;
      double beside = 0;  // ranks
      double most = 0;    // that what stands beside them may be worth, by time
      for (const Slot& slot : slots_) {
        const double length = slot.longest + fixed_;
        // What joins their groups, in time that they leave there.
        const double joined = (slot.size * (slot.longest + fixed_) - slot.area) / ranks_;
        cost += length - joined;
        beside += ranks_ - slot.size;
        most += (ranks_ - slot.size) / ranks_ * length;
      }
      const double tokens = beside * static_cast<double>(problem_.capacity());
      least_ = std::min(least_, cost - std::min(most, prices_.worth(tokens)));
      return;
    }
    for (const Stay& stay : stays_[index]) {
      const double with_it = area + stay.size * stay.cost;
      // By index: placing the next ones adds slots for a while.
      const std::size_t num_slots = slots_.size();
      for (std::size_t s = 0; s < num_slots; ++s) {
        const Slot before = slots_[s];
        for (std::size_t place = 0; place <= before.num_groups; ++place) {
          if (!admits(before, stay, place)) continue;
          slots_[s] = with(before, stay, place);
          place_from(index + 1, with_it);
        }
        slots_[s] = before;
      }
      slots_.push_back(with({}, stay, 0));
      place_from(index + 1, with_it);
      slots_.pop_back();
    }
  }

  const Problem& problem_;
  Prices prices_;
  double ranks_;
  double fixed_;
  std::int64_t max_tried_;
  std::vector<std::vector<Stay>> stays_;  // of each long bundle
  std::vector<Slot> slots_;
  std::vector<double> least_areas_;
  double least_ = 0;
  std::int64_t num_tried_ = 0;
};

// Whether some slots are long because of what is in them: a bundle needs a wide group, or there is
// but one size. Elsewhere short bundles fill what a long one leaves, and its price cannot rise.
bool has_long_slots(const Problem& problem) {
  if (problem.sizes().size() == 1) return true;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    if (problem.smallest_place(bundle) > 0) return true;
  }
  return false;
}

}  // namespace

Nanoseconds equal_count_bound(const Problem& problem) {
  double work = 0;
  double tokens = 0;
  double fastest_speed = 1;
  if (problem.has_speeds()) {
    const auto& speeds = problem.topology().rank_speed;
    fastest_speed = *std::max_element(speeds.begin(), speeds.end());
  }
  double item = 0;  // the slowest at its fastest, as if it ran on the fastest rank
  // Of single sequences the shorter is faster on every size, and fits all that a longer one does.
  Tokens longest = 0;  // padded, of those whose fastest is no more than `item`
  const bool has_single =
      problem.work().extra_costs.empty() && problem.num_bundles() == problem.num_items();
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const bool is_single =
        has_single && problem.num_sequences(bundle) == 1 && !problem.is_alone(bundle);
    const Tokens padded = is_single ? problem.tokens(1, bundle) : 0;
    const bool is_shorter = is_single && padded < longest;
    double least = std::numeric_limits<double>::infinity();
    double fastest = std::numeric_limits<double>::infinity();
    bool has_least = false;  // no wider group has less work
    for (const std::int32_t size : problem.sizes()) {
      // Wider groups only matter for the slowest bundle, and for work if they have less.
      if (has_least && (is_shorter || fastest <= item)) break;
      if (!problem.fits(size, bundle)) continue;
      const Nanoseconds cost = problem.least_cost(size, bundle);
      least = std::min(least, static_cast<double>(cost) * problem.least_span(size));
      // Slow ranks only add to what groups cost at their pace.
      has_least = problem.grows_from(size) && static_cast<double>(cost) * size >= least;
      fastest = std::min(fastest, static_cast<double>(cost + problem.least_fixed(size)) *
                                      fastest_speed / problem.fastest_speed(size));
    }
    work += least;
    tokens += static_cast<double>(problem.least_tokens(bundle));
    if (!is_shorter) item = std::max(item, fastest);
    if (is_single) longest = std::max(longest, padded);
  }
  double speed = problem.num_ranks();
  if (problem.has_speeds()) {
    const auto& speeds = problem.topology().rank_speed;
    speed = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  }
  const double room = problem.num_ranks() * static_cast<double>(problem.capacity());
  double slots = std::max(1.0, std::ceil(tokens / room * (1 - slack)));
  if (const std::int32_t most = problem.options().max_sequences; most > 0) {
    // A slot holds most of them on the smallest groups.
    double sequences = 0;
    for (ItemId id = 0; id < problem.num_items(); ++id) sequences += problem.num_sequences(id);
    const std::int32_t num_groups = problem.num_ranks() / problem.sizes().front();
    const double places = num_groups;
    slots = std::max(slots, std::ceil(sequences / (places * most) * (1 - slack)));
  }
  const double fixed = slots * static_cast<double>(problem.microbatch()) * problem.num_ranks();
  const double even = (work + fixed) / speed * (1 - slack);
  const double rounding = problem.has_speeds() ? 1 + 0.5 * problem.num_items() : 0;
  const double slowest = item / fastest_speed;
  return std::max<Nanoseconds>(0, static_cast<Nanoseconds>(std::max(even, slowest) - rounding));
}

Nanoseconds slot_bound(const Problem& problem) {
  const Nanoseconds even = equal_count_bound(problem);
  if (problem.has_speeds()) return even;
  const SizeRules volume(static_cast<std::size_t>(problem.num_ranks()) + 1);
  const SizeRules best = best_rules(problem);
  SlotBound by_volume(problem, volume);
  SlotBound by_rules(problem, best);
  double bound = std::max(by_volume.bound(), by_rules.bound());
  if (problem.num_bundles() == problem.num_items() && has_long_slots(problem)) {
    const bool is_volume = by_volume.prices().total() >= by_rules.prices().total();
    const Prices& prices = (is_volume ? by_volume : by_rules).prices();
    Leaders leaders(problem, is_volume ? volume : best, prices.all());
    double surplus = price_surplus(problem, leaders);
    // On more ranks single ones matter less, and take longer to count.
    constexpr std::int32_t most_ranks = 64;
    if (problem.num_ranks() <= most_ranks && problem.sizes().size() > 1) {
      surplus = std::max(surplus, price_program(problem, leaders, num_sums_of(bound)));
    }
    bound = std::max(bound, prices.total() + surplus);
    if (problem.sizes().size() == 1) bound = std::max(bound, equal_groups_bound(problem, leaders));
  }
  return std::max(even, static_cast<Nanoseconds>(std::ceil(bound * (1 - slack))));
}

}  // namespace isochron
