// The smallest T for which no argument excludes a step of length T.
//
// Within T a bundle can use only sizes that run it in time, and each size has an area: ranks times
// time, with a share of the fixed cost of its micro-batch. Shares come from dual feasible functions
// f of the part x of the capacity that an item fills: whatever shares a micro-batch, its f(x) add
// up to at most 1 (Fekete and Schepers, 2001), and groups of each size may have their own f. Three
// arguments:
//   area    the least areas add up to no more than ranks * T.
//   slots   a rank with k micro-batches works T - k * fixed at most and holds items of at most k
//           shares: the fewer it has, the denser its work must be, and little is dense.
//   cover   a bundle that no smallest group runs within T has a micro-batch on a wider group. A
//           rank runs a micro-batch of the smallest size besides, or all of its time is covered by
//           such bundles, by others that pay traffic there, or by nothing.
// With equal counts a fourth:
//   counts  every rank pays for as many micro-batches as the shares take on average, rounded up,
//           also the ranks of the slowest bundle.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/bounds/dense_work.h"
#include "isochron/plan/bounds/share_rule.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

struct Option {
  Nanoseconds time = 0;  // of a micro-batch with this bundle alone
  Nanoseconds cost = 0;  // of that, the bundle's
  double work = 0;       // ranks * cost
  double latency = 0;    // ranks * latency
  Tokens tokens = 0;     // padded, if the bundle is one item
  std::int32_t size = 1;
};

class StepBound {
 public:
  StepBound(const Problem& problem, Counts counts)
      : problem_(problem),
        has_equal_counts_(counts == Counts::equal),
        fixed_(static_cast<double>(problem.microbatch())),
        is_plain_(problem.num_bundles() == problem.num_items()) {
    if (problem.has_speeds()) {
      const auto& speeds = problem.topology().rank_speed;
      for (const double speed : speeds) speed_ += speed;
      fastest_speed_ = *std::max_element(speeds.begin(), speeds.end());
      const bool is_exact = std::all_of(speeds.begin(), speeds.end(), [](double speed) {
        return 1 / speed == std::floor(1 / speed);
      });
      rounding_ = is_exact ? 0 : 1 + 0.5 * problem.num_items();
    } else {
      speed_ = problem.num_ranks();
    }
    find_options();
  }

  Nanoseconds bound(Nanoseconds enough) {
    Nanoseconds low = raise(item_target(), everywhere({}));
    if (low >= enough) return low;
    for (SizeRules& rules : best_rules(low)) low = raise(low, std::move(rules));
    return low;
  }

 private:
  // What shares a micro-batch has one size: every size may have a rule of its own.
  using SizeRules = std::vector<ShareRule>;  // by size

  SizeRules everywhere(const ShareRule& rule) const {
    return SizeRules(static_cast<std::size_t>(problem_.num_ranks()) + 1, rule);
  }

  const ShareRule& rule_of(const Option& option) const {
    return rules_[static_cast<std::size_t>(option.size)];
  }

  std::size_t num_bundles() const { return begin_.size() - 1; }

  // Whether no group larger than this size does less work.
  bool grows_from(std::int32_t size) const {
    return problem_.grows_from(size) && !problem_.has_speeds();
  }

  // What this option costs at the pace of its slowest rank. Where groups grow from its size, none
  // that is larger does less work, however slow its ranks are.
  static double paced_work(const Option& option) {
    return static_cast<double>(option.cost) * option.size;
  }

  // No step is shorter: the slowest bundle at its fastest.
  Nanoseconds item_target() const {
    if (!problem_.has_speeds()) return item_;
    return std::max<Nanoseconds>(
        0, static_cast<Nanoseconds>(static_cast<double>(item_) / fastest_speed_) - 1);
  }

  Option option_of(std::int32_t size, BundleId bundle) const {
    const Nanoseconds fixed = problem_.least_fixed(size);
    const Nanoseconds cost = problem_.least_cost(size, bundle);
    const double span = problem_.least_span(size);
    // As if it ran on the fastest rank.
    const double pace = fastest_speed_ / problem_.fastest_speed(size);
    return {.time = problem_.has_speeds()
                        ? static_cast<Nanoseconds>(static_cast<double>(cost + fixed) * pace)
                        : cost + fixed,
            .cost = cost,
            .work = static_cast<double>(cost) * span,
            .latency = static_cast<double>(fixed - problem_.microbatch()) * span,
            .tokens = is_plain_ ? problem_.tokens(size, problem_.items_of(bundle).front()) : 0,
            .size = size};
  }

  void find_options() {
    const auto count = static_cast<std::size_t>(problem_.num_bundles());
    std::vector<Option> first(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto bundle = static_cast<BundleId>(i);
      first[i] = option_of(problem_.sizes()[problem_.smallest_place(bundle)], bundle);
    }
    // The slowest bundle at its fastest. Most are faster than that in their smallest group.
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return first[a].time != first[b].time ? first[a].time > first[b].time : a < b;
    });
    for (const std::size_t i : order) {
      if (first[i].time <= item_) break;
      Nanoseconds fastest = first[i].time;
      for (const std::int32_t size : problem_.sizes()) {
        if (fastest <= item_) break;
        if (size <= first[i].size || !problem_.fits(size, static_cast<BundleId>(i))) continue;
        fastest = std::min(fastest, option_of(size, static_cast<BundleId>(i)).time);
      }
      item_ = std::max(item_, fastest);
    }
    // No target is below the mean of the least work either, if that is the first option's.
    item_area_ = item_target();
    if (std::all_of(first.begin(), first.end(),
                    [&](const Option& option) { return problem_.grows_from(option.size); })) {
      double work = 0;
      for (const Option& option : first) work += paced_work(option);
      const double mean = work / speed_ * (1 - slack) - rounding_;
      item_area_ = std::max(item_area_, static_cast<Nanoseconds>(mean));
    }
    begin_.reserve(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      begin_.push_back(options_.size());
      options_.push_back(first[i]);
      // Once an option is in time at any target, what costs more work than it with a whole
      // micro-batch for each item is never the better one, nor is what follows if links get no
      // cheaper.
      double enough = infinite;
      const auto most = static_cast<double>(problem_.items_of(static_cast<BundleId>(i)).size());
      const auto note = [&](const Option& option) {
        if (option.time <= time_limit(item_area_)) {
          const double fixed = option.latency + option.size * fixed_;
          enough = std::min(enough, option.work + most * fixed);
        }
      };
      note(first[i]);
      for (const std::int32_t size : problem_.sizes()) {
        if (size <= first[i].size || !problem_.fits(size, static_cast<BundleId>(i))) continue;
        const Option option = option_of(size, static_cast<BundleId>(i));
        if (paced_work(option) >= enough && problem_.grows_from(size)) {
          left_out_.resize(count, num_ranks_and_one());
          left_out_[i] = size;
          break;
        }
        options_.push_back(option);
        note(option);
      }
    }
    begin_.push_back(options_.size());
  }

  std::int32_t num_ranks_and_one() const { return problem_.num_ranks() + 1; }

  // The least share on the sizes that were left out because of their work: what shares a
  // micro-batch of a wide group there may take less of it than a micro-batch of its own.
  double share_left_out(std::size_t i) const {
    if (left_out_[i] == num_ranks_and_one()) return infinite;
    if (has_volume_rules_) {
      return static_cast<double>(problem_.least_tokens(static_cast<BundleId>(i))) /
             static_cast<double>(problem_.capacity());
    }
    if (has_many_sizes()) return 0;
    double least = infinite;
    for (const std::int32_t size : problem_.sizes()) {
      if (size < left_out_[i]) continue;
      const Option option{
          .tokens = is_plain_
                        ? problem_.tokens(size, problem_.items_of(static_cast<BundleId>(i)).front())
                        : 0,
          .size = size};
      least = std::min(least, size * share(i, option, rule_of(option)));
    }
    return least;
  }

  bool has_many_sizes() const { return problem_.sizes().size() > 16; }

  // The smallest target from `low` up that passes; a test that passes a target passes later ones.
  template <class Test>
  static Nanoseconds smallest(Nanoseconds low, Test test) {
    if (test(low)) return low;
    Nanoseconds fails = low;
    Nanoseconds step = std::max<Nanoseconds>(1, low >> 9);
    Nanoseconds passes = low + step;
    while (!test(passes)) {
      fails = passes;
      step *= 2;
      passes += step;
    }
    while (passes - fails > std::max<Nanoseconds>(1, low >> 18)) {
      const Nanoseconds middle = fails + (passes - fails) / 2;
      (test(middle) ? passes : fails) = middle;
    }
    return fails + 1;
  }

  // What fits at nominal speed if the fastest ranks do it within the target.
  Nanoseconds time_limit(Nanoseconds target) const {
    if (!problem_.has_speeds()) return target;
    return static_cast<Nanoseconds>(static_cast<double>(target + 1) * fastest_speed_) + 1;
  }

  // The sum of f over the items of a bundle.
  double share(std::size_t bundle, const Option& option, const ShareRule& rule) const {
    const Tokens capacity = problem_.capacity() * option.size;
    if (is_plain_) return rule(option.tokens, capacity);
    double sum = 0;
    for (const ItemId item : problem_.items_of(static_cast<BundleId>(bundle))) {
      sum += rule(problem_.tokens(option.size, item), capacity);
    }
    return sum;
  }

  // Every target asks for shares by the rules at hand.
  void add_up_shares() {
    shares_.clear();
    shares_.reserve(options_.size());
    for (std::size_t i = 0; i < num_bundles(); ++i) {
      for (std::size_t k = begin_[i]; k < begin_[i + 1]; ++k) {
        shares_.push_back(share(i, options_[k], rule_of(options_[k])));
      }
    }
    shares_left_out_.clear();
    if (left_out_.empty()) return;
    for (std::size_t i = 0; i < num_bundles(); ++i) shares_left_out_.push_back(share_left_out(i));
  }

  struct Load {
    double work = infinite;   // least, with its share of latencies
    double share = infinite;  // least, times ranks
    double area = infinite;   // least of both together
    bool is_settled = false;  // the same at every later target
  };

  Load load_of(std::size_t i, Nanoseconds limit) const {
    Load load{.is_settled = true};
    for (std::size_t k = begin_[i]; k < begin_[i + 1]; ++k) {
      const Option& option = options_[k];
      if (option.time > limit) {
        load.is_settled = false;
        continue;
      }
      const double part = shares_[k];
      const double work = option.work + option.latency * part;
      load.work = std::min(load.work, work);
      load.share = std::min(load.share, option.size * part);
      load.area = std::min(load.area, work + option.size * fixed_ * part);
    }
    if (!left_out_.empty()) load.share = std::min(load.share, shares_left_out_[i]);
    return load;
  }

  Nanoseconds raise(Nanoseconds low, SizeRules rules) {
    rules_ = std::move(rules);
    has_volume_rules_ = std::all_of(rules_.begin(), rules_.end(), [](const ShareRule& rule) {
      return rule.kind == ShareRule::Kind::volume;
    });
    add_up_shares();
    settled_.clear();
    unsettled_.clear();
    maybe_wide_.clear();
    narrow_work_ = 0;
    settled_sum_ = {.work = 0, .share = 0, .area = 0};
    for (std::size_t i = 0; i < num_bundles(); ++i) {
      const Load load = load_of(i, time_limit(low));
      if (load.is_settled) {
        settled_.push_back(load);
        settled_sum_.work += load.work;
        settled_sum_.share += load.share;
        settled_sum_.area += load.area;
      } else {
        unsettled_.push_back(i);
      }
      if (load.is_settled && options_[begin_[i]].size == problem_.sizes().front()) {
        narrow_work_ += least_work(i);
      } else {
        maybe_wide_.push_back(i);
      }
    }
    low = smallest(low, [&](Nanoseconds target) { return area_fits(target); });
    if (problem_.has_speeds()) return low;
    const double shares = sum_at(low).share;
    const auto usual = static_cast<std::int32_t>(shares * (1 - slack) / problem_.num_ranks());
    for (std::int32_t few = std::max(1, usual); few <= usual + 1; ++few) {
      const double density = critical_density_at(low, few);
      double dense = 0;
      for (const Load& load : settled_) dense += std::max(0.0, load.work - density * load.share);
      low = smallest(low, [&](Nanoseconds target) { return slots_fit(target, density, dense); });
    }
    low = smallest(low, [&](Nanoseconds target) { return cover_fits(target); });
    if (!has_equal_counts_) return low;
    return smallest(low, [&](Nanoseconds target) { return counts_fit(target); });
  }

  Load sum_at(Nanoseconds target) const {
    Load sum = settled_sum_;
    for (const std::size_t i : unsettled_) {
      const Load load = load_of(i, time_limit(target));
      sum.work += load.work;
      sum.share += load.share;
      sum.area += load.area;
    }
    return sum;
  }

  bool area_fits(Nanoseconds target) const {
    return sum_at(target).area * (1 - slack) <= speed_ * (static_cast<double>(target) + rounding_);
  }

  // The density for which slots_fit() allows the least work.
  double critical_density_at(Nanoseconds target, std::int32_t few) const {
    std::vector<WorkShare> loads;
    const auto add = [&](const Load& load) {
      if (load.work != infinite) loads.push_back({load.work, load.share});
    };
    for (const Load& load : settled_) add(load);
    for (const std::size_t i : unsettled_) add(load_of(i, target));
    return critical_density(loads, few, static_cast<double>(target), fixed_);
  }

  // `dense` comes with that of the settled bundles.
  bool slots_fit(Nanoseconds target, double density, double dense) const {
    double work = settled_sum_.work;
    for (const std::size_t i : unsettled_) {
      const Load load = load_of(i, target);
      if (load.work == infinite) return false;
      work += load.work;
      dense += std::max(0.0, load.work - density * load.share);
    }
    return work * (1 - slack) <=
           most_work(problem_.num_ranks(), static_cast<double>(target), fixed_, density, dense);
  }

  // All ranks have as many micro-batches as all shares take on average, or more.
  bool counts_fit(Nanoseconds target) const {
    const double ranks = problem_.num_ranks();
    const double share = sum_at(target).share;
    if (share == infinite) return false;
    const double others = std::max(0.0, std::ceil(share / ranks * (1 - slack)) - 1) * fixed_;
    const double left = static_cast<double>(target) - others;  // for the slowest, beside the others
    if (left < static_cast<double>(item_)) return false;
    const double work = sum_at(static_cast<Nanoseconds>(std::ceil(left))).work;
    return work * (1 - slack) <= ranks * (left - fixed_);
  }

  bool cover_fits(Nanoseconds target) const {
    const std::int32_t smallest_size = problem_.sizes().front();
    const double time = static_cast<double>(target);
    const double ranks = problem_.num_ranks();
    if (time <= fixed_) return true;
    double narrow_work = narrow_work_;  // of bundles that a smallest group runs within the target
    double wide_work = 0;
    double wide_slots = 0;  // ranks * micro-batches
    bool has_wide = false;
    const auto add_wide = [&](std::size_t i) {
      has_wide = true;
      double work = infinite;
      double slots = infinite;
      for (std::size_t k = begin_[i]; k < begin_[i + 1]; ++k) {
        const Option& option = options_[k];
        if (option.time > target) continue;
        // Of bundles that take more than 1/size of the time, size - 1 share a micro-batch.
        const std::int32_t steps = std::max(1, option.size / smallest_size - 1);
        const double scaled = (steps + 1) * static_cast<double>(option.cost) /
                              (time - static_cast<double>(option.time - option.cost)) * (1 - 1e-9);
        const double by_time = std::min(1.0, std::floor(scaled) / steps);
        const double by_tokens = shares_[k];
        const bool is_volume = rule_of(option).kind == ShareRule::Kind::volume;
        const double part = is_volume ? by_time : by_tokens;
        work = std::min(work, option.work + option.latency * part);
        slots = std::min(slots, option.size * part);
      }
      wide_work += work;
      wide_slots += slots;
    };
    for (const std::size_t i : maybe_wide_) {
      const Option& option = options_[begin_[i]];
      if (option.size > smallest_size || option.time > target) {
        add_wide(i);
      } else {
        narrow_work += least_work(i);
      }
    }
    if (!has_wide) return true;
    if (wide_work == infinite) return false;
    // y ranks with a micro-batch of the smallest size; the time of the others is covered.
    const double wide_area = wide_work + wide_slots * fixed_;
    const double traffic = least_traffic(target);
    const auto cost_of = [&](double y) {
      return fixed_ * y + traffic * std::max(0.0, (ranks - y) * time - wide_area);
    };
    double least = std::min(cost_of(0), cost_of(ranks));
    const double edge = std::clamp(ranks - wide_area / time, 0.0, ranks);
    least = std::min({least, cost_of(std::floor(edge)), cost_of(std::ceil(edge))});
    return (narrow_work + wide_area + least) * (1 - slack) <= ranks * time;
  }

  // Of a bundle, whatever its size: a larger group may have a cheaper exchange.
  double least_work(std::size_t i) const {
    if (grows_from(options_[begin_[i]].size)) return options_[begin_[i]].work;
    double least = infinite;
    for (std::size_t k = begin_[i]; k < begin_[i + 1]; ++k) {
      least = std::min(least, options_[k].work);
    }
    return least;
  }

  // The least part of its area that a bundle loses to traffic in a group that is not smallest.
  double least_traffic(Nanoseconds target) const {
    if (problem_.sizes().size() < 2) return 1;
    const std::int32_t smallest_size = problem_.sizes().front();
    double least = 1;
    // Longer sequences compute more for the same traffic: the dearest narrow bundle decides.
    std::size_t dearest = num_bundles();
    for (std::size_t i = 0; i < num_bundles(); ++i) {
      const Option& option = options_[begin_[i]];
      if (option.size > smallest_size || option.time > target) continue;
      if (dearest == num_bundles() || option.cost > options_[begin_[dearest]].cost) dearest = i;
    }
    if (dearest == num_bundles()) return 1;
    const double alone = options_[begin_[dearest]].work;
    for (const std::int32_t size : problem_.sizes()) {
      if (size == smallest_size) continue;
      const Option option = option_of(size, static_cast<BundleId>(dearest));
      least = std::min(least, option.work <= 0 ? 0 : std::max(0.0, 1 - alone / option.work));
    }
    return least;
  }

  // The rules that make the micro-batches cost most, after the volume: the best of each size, and
  // the best for all.
  std::vector<SizeRules> best_rules(Nanoseconds target) const {
    const Nanoseconds limit = time_limit(target);
    std::vector<const Option*> first_in_time(num_bundles(), nullptr);
    for (std::size_t i = 0; i < num_bundles(); ++i) {
      std::size_t k = begin_[i];
      while (k < begin_[i + 1] && options_[k].time > limit) ++k;
      if (k < begin_[i + 1]) first_in_time[i] = &options_[k];
    }
    SizeRules mixed = everywhere({});
    std::vector<double> most(mixed.size(), 0);  // of each size
    ShareRule best;
    double best_sum = 0;
    double usual = 0;
    for (const ShareRule& rule : share_rules()) {
      std::vector<double> demand(mixed.size(), 0);
      for (std::size_t i = 0; i < num_bundles(); ++i) {
        const Option* option = first_in_time[i];
        if (option == nullptr) continue;
        demand[static_cast<std::size_t>(option->size)] += option->size * share(i, *option, rule);
      }
      double sum = 0;
      for (std::size_t size = 0; size < mixed.size(); ++size) {
        sum += demand[size];
        if (demand[size] <= most[size]) continue;
        most[size] = demand[size];
        mixed[size] = rule;
      }
      if (rule.kind == ShareRule::Kind::volume) usual = sum;
      if (sum <= best_sum) continue;
      best_sum = sum;
      best = rule;
    }
    std::vector<SizeRules> rules;
    const double mixed_sum = std::accumulate(most.begin(), most.end(), 0.0);
    if (mixed_sum > usual) rules.push_back(std::move(mixed));
    if (best.kind != ShareRule::Kind::volume && best_sum < mixed_sum)
      rules.push_back(everywhere(best));
    return rules;
  }

  const Problem& problem_;
  bool has_equal_counts_;
  double fixed_;
  bool is_plain_;     // every bundle is one item
  double speed_ = 0;  // of all ranks
  double fastest_speed_ = 1;
  double rounding_ = 0;  // of the micro-batches of a rank, which take their cost over its speed
  std::vector<std::size_t> begin_;  // of the options of each bundle
  std::vector<Option> options_;
  std::vector<std::int32_t> left_out_;  // sizes of each bundle from here on; empty: none
  Nanoseconds item_ = 0;                // the slowest bundle at its fastest
  Nanoseconds item_area_ = 0;           // a first bound
  // Of the rules at hand:
  SizeRules rules_;
  bool has_volume_rules_ = true;
  std::vector<double> shares_;           // of each option
  std::vector<double> shares_left_out_;  // of each bundle, if any has sizes left out
  std::vector<Load> settled_;
  std::vector<std::size_t> unsettled_;
  Load settled_sum_;
  double narrow_work_ = 0;               // of settled bundles in smallest groups
  std::vector<std::size_t> maybe_wide_;  // the others
};

// From how few sequences a micro-batch may hold: each takes such a part of its fixed cost.
Nanoseconds bound_by_sequences(const Problem& problem) {
  const std::int32_t most = problem.options().max_sequences;
  if (most == 0) return 0;
  double sum = 0;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const double part = std::min(1.0, static_cast<double>(problem.num_sequences(item)) / most);
    double least = infinite;
    for (const std::int32_t size : problem.sizes()) {
      if (!problem.item_fits(size, item)) continue;
      const auto alone = static_cast<double>(problem.least_item_cost(size, item));
      if (alone * size >= least && problem.grows_from(size)) break;
      const double cost = alone + part * static_cast<double>(problem.least_fixed(size));
      least = std::min(least, cost * problem.least_span(size));
    }
    if (least < infinite) sum += least;
  }
  double speed = problem.num_ranks();
  if (problem.has_speeds()) {
    const auto& speeds = problem.topology().rank_speed;
    speed = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  }
  const double rounding = problem.has_speeds() ? 1 + 0.5 * problem.num_items() : 0;
  return static_cast<Nanoseconds>(std::max(0.0, sum / speed * (1 - slack) - rounding));
}

}  // namespace

Nanoseconds step_bound(const Problem& problem, Nanoseconds enough) {
  const Nanoseconds low = bound_by_sequences(problem);
  if (low >= enough) return low;
  return std::max(low, StepBound(problem, Counts::free).bound(enough));
}

Nanoseconds equal_step_bound(const Problem& problem) {
  constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
  return std::max(StepBound(problem, Counts::equal).bound(never), bound_by_sequences(problem));
}

}  // namespace isochron
