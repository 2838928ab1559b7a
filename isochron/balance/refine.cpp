// Local search by exchange between the dearest bin and cheap ones.
//
// Moving a difference d of cost from a bin of cost a to one of cost b lowers the dearer of the two
// if 0 < d < a - b, most of all at d = (a - b) / 2. So for each x of the dear bin the best y of the
// cheap one is next to x - (a - b) / 2 in sorted order, and a pass over both bins finds the best
// pair. Where single units do not help, the same pass runs over all subsets of up to two units, and
// where bins are full of tokens, one unit is weighed against several short ones.
//
//   dear   1  4  9 12      gap 10: x = 9 wants y = 4, x = 12 wants y = 7
//   cheap  2  3  5         9 <-> 3 moves 6, 9 <-> 5 moves 4; both leave max = a - 4

#include <algorithm>
#include <memory_resource>
#include <tuple>
#include <utility>

#include "isochron/balance/assignment.h"

namespace isochron {

namespace {

constexpr std::size_t widest_scan = 32;  // cheap bins weighed before the best so far is taken
constexpr std::size_t pair_scan = 8;     // the same with pairs, which cost more
constexpr std::size_t pair_units = 48;   // a bin with more units has singles enough
constexpr std::int32_t none = -1;

// Up to two units of a bin, and what they weigh together.
struct Subset {
  Nanoseconds cost = 0;
  Tokens tokens = 0;
  std::int32_t size = 0;
  std::int32_t first = none;
  std::int32_t second = none;

  [[nodiscard]] std::int32_t count() const { return (first != none) + (second != none); }
};

// Several units together.
struct Run {
  Nanoseconds cost = 0;
  Tokens tokens = 0;
  std::int64_t size = 0;
};

struct Exchange {
  Nanoseconds gain = 0;  // by how much the dearer of the two bins gets cheaper; 0: no exchange
  Subset from_dear;
  Subset from_cheap;
  std::vector<std::int32_t> bundle_from_cheap = {};  // units, instead of a subset
};

struct Entry {
  Nanoseconds cost;
  std::int32_t unit;

  // By cost; of equal ones the later unit first, as in DearestFirst backwards.
  bool operator<(const Entry& other) const {
    return cost != other.cost ? cost < other.cost : unit > other.unit;
  }
};

struct Bin {
  std::pmr::vector<Entry> units;  // ascending
  Nanoseconds cost = 0;
  Tokens tokens = 0;
  std::int64_t size = 0;
};

class Refinement {
 public:
  Refinement(const Units& units, const DearestFirst& order, std::int32_t num_bins,
             const Limits& limits, std::int64_t& work, BinOf& bin_of)
      : units_(units),
        limits_(limits),
        has_volume_(limits.has_volume()),
        work_(work),
        bin_of_(bin_of) {
    bins_.reserve(static_cast<std::size_t>(num_bins));
    for (std::int32_t bin = 0; bin < num_bins; ++bin) {
      bins_.push_back({.units = std::pmr::vector<Entry>(&memory_)});
    }
    std::vector<std::size_t> counts(bins_.size(), 0);
    for (const std::int32_t bin : bin_of) ++counts[static_cast<std::size_t>(bin)];
    for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i].units.reserve(counts[i] + 1);
    for (std::size_t i = bin_of.size(); i-- > 0;) {
      const std::int32_t unit = order.units[i];
      Bin& bin = bin_with(unit);
      bin.units.push_back({order.costs[i], unit});
      bin.cost += order.costs[i];
    }
    if (has_volume_) {
      for (std::size_t unit = 0; unit < bin_of.size(); ++unit) {
        Bin& bin = bin_with(static_cast<std::int32_t>(unit));
        bin.tokens += units.tokens_of(unit);
        bin.size += units.size_of(unit);
      }
    }
    by_cost_.reserve(bins_.size());
    for (const Bin& bin : bins_) {
      by_cost_.push_back({bin.cost, static_cast<std::int32_t>(by_cost_.size())});
    }
    std::sort(by_cost_.begin(), by_cost_.end());
  }

  Nanoseconds run(RefineGoal goal, Nanoseconds target) {
    target_ = target;
    std::size_t top = by_cost_.size();  // bins from here on cannot be improved
    while (top > 1 && work_ > 0) {
      if (goal == RefineGoal::largest && by_cost_[top - 1].cost <= target) break;
      if (!improve(top - 1)) {
        if (goal == RefineGoal::largest) break;
        --top;
      }
    }
    return by_cost_.back().cost;
  }

 private:
  [[nodiscard]] Bin& bin_with(std::int32_t unit) {
    return bins_[static_cast<std::size_t>(bin_of_[static_cast<std::size_t>(unit)])];
  }
  [[nodiscard]] Bin& bin_at(std::size_t place) {
    return bins_[static_cast<std::size_t>(by_cost_[place].unit)];
  }

  bool improve(std::size_t dear) {
    return improve(dear, widest_scan, [&](Bin& a, Bin& b) { return best_single(a, b); }) ||
           improve(dear, pair_scan, [&](Bin& a, Bin& b) { return best_pair(a, b); }) ||
           (has_volume_ &&
            improve(dear, pair_scan, [&](Bin& a, Bin& b) { return best_bundle(a, b); }));
  }

  // Weighs the dear bin against the cheapest ones, takes the first exchange that comes near half
  // of the gap, else the best, and goes on to dearer bins only while there is none at all.
  template <class Best>
  bool improve(std::size_t dear, std::size_t scan, Best best_of) {
    Bin& a = bin_at(dear);
    Exchange best;
    std::size_t partner = 0;
    for (std::size_t cheap = 0; cheap < dear && work_ > 0; ++cheap) {
      if (best.gain > 0 && cheap >= scan) break;
      Bin& b = bin_at(cheap);
      const Nanoseconds gap = a.cost - b.cost;
      if (gap / 2 <= best.gain) break;  // no later bin can do better
      Exchange exchange = best_of(a, b);
      if (exchange.gain > best.gain) {
        best = exchange;
        partner = cheap;
        // Near half of the gap, or as low as is asked for: good enough.
        if (best.gain >= std::min(gap / 4, std::max<Nanoseconds>(1, a.cost - target_))) break;
      }
    }
    if (best.gain == 0) return false;
    apply(best, dear, partner);
    return true;
  }

  // Whether the dear bin may hold `change` units more and the cheap one as many less.
  [[nodiscard]] bool is_allowed_count(const Bin& a, const Bin& b, std::int64_t change) const {
    const auto count_a = static_cast<std::int64_t>(a.units.size()) + change;
    const auto count_b = static_cast<std::int64_t>(b.units.size()) - change;
    return std::min(count_a, count_b) >= limits_.min_units &&
           std::max(count_a, count_b) <= limits_.max_units;
  }

  [[nodiscard]] bool is_room(const Bin& a, const Bin& b, const Subset& x, const Subset& y) const {
    return a.tokens - x.tokens + y.tokens <= limits_.capacity &&
           b.tokens - y.tokens + x.tokens <= limits_.capacity &&
           a.size - x.size + y.size <= limits_.max_size &&
           b.size - y.size + x.size <= limits_.max_size;
  }

  struct Match {
    Nanoseconds gain = 0;
    std::size_t i = 0, j = 0;
  };

  // The allowed pair (i, j) of two ascending lists of costs that gains most, if any gains.
  template <class CostA, class CostB, class Allowed>
  [[nodiscard]] Match best_match(Nanoseconds gap, std::size_t num_a, CostA cost_a,
                                 std::size_t num_b, CostB cost_b, Allowed is_allowed_pair) {
    // The limits may forbid the neighbours: look a little further then.
    const std::size_t reach = has_volume_ ? 6 : 1;
    Match best;
    const auto weigh = [&](std::size_t i, std::size_t j) {
      const Nanoseconds moved = cost_a(i) - cost_b(j);
      const Nanoseconds gain = std::min(moved, gap - moved);
      if (gain <= best.gain || !is_allowed_pair(i, j)) return false;
      best = {gain, i, j};
      return true;
    };
    std::size_t ideal = 0;  // first of b that moves at most half of the gap
    for (std::size_t i = 0; i < num_a; ++i) {
      const Nanoseconds wanted = cost_a(i) - gap / 2;
      while (ideal < num_b && cost_b(ideal) < wanted) ++ideal;
      for (std::size_t step = 0; step < reach && ideal + step < num_b; ++step) {
        if (weigh(i, ideal + step)) break;
      }
      for (std::size_t step = 1; step <= reach && step <= ideal; ++step) {
        if (weigh(i, ideal - step)) break;
      }
      if (best.gain == gap / 2) break;
    }
    work_ -= static_cast<std::int64_t>(num_a + num_b);
    return best;
  }

  [[nodiscard]] Subset single(const Entry& entry) const {
    const auto unit = static_cast<std::size_t>(entry.unit);
    return {entry.cost, units_.tokens_of(unit), units_.size_of(unit), entry.unit, none};
  }

  [[nodiscard]] Exchange best_single(const Bin& a, const Bin& b) {
    // Position 0 of b is "nothing in return". Without a volume only that one changes a count.
    const auto of_b = [&](std::size_t j) { return j == 0 ? Subset{} : single(b.units[j - 1]); };
    const bool is_free = is_allowed_count(a, b, -1);
    const std::size_t num_a = a.units.size();
    if (!is_free && num_a > 1 && a.units[num_a - 2].cost <= b.units.front().cost &&
        a.units.back().cost - b.units.back().cost >= a.cost - b.cost) {
      work_ -= 1;
      return {};  // all but one of a are too cheap, and that one is too dear
    }
    const Match match = best_match(
        a.cost - b.cost, num_a, [&](std::size_t i) { return a.units[i].cost; }, b.units.size() + 1,
        [&](std::size_t j) { return j == 0 ? 0 : b.units[j - 1].cost; },
        [&](std::size_t i, std::size_t j) {
          if (j == 0 && !is_free) return false;
          return !has_volume_ || is_room(a, b, single(a.units[i]), of_b(j));
        });
    if (match.gain == 0) return {};
    return {match.gain, single(a.units[match.i]), of_b(match.j)};
  }

  void list_subsets(const Bin& bin, std::vector<Subset>& subsets) const {
    subsets.clear();
    subsets.emplace_back();
    for (std::size_t i = 0; i < bin.units.size(); ++i) {
      const Subset one = single(bin.units[i]);
      subsets.push_back(one);
      for (std::size_t j = 0; j < i; ++j) {
        const Subset other = single(bin.units[j]);
        subsets.push_back({one.cost + other.cost, one.tokens + other.tokens, one.size + other.size,
                           other.first, one.first});
      }
    }
    std::sort(subsets.begin(), subsets.end(), [](const Subset& x, const Subset& y) {
      return std::tuple(x.cost, x.first, x.second) < std::tuple(y.cost, y.first, y.second);
    });
  }

  [[nodiscard]] Exchange best_pair(const Bin& a, const Bin& b) {
    if (a.units.size() > pair_units || b.units.size() > pair_units) return {};
    if (listed_ != &a) {
      list_subsets(a, of_dear_);
      listed_ = &a;
    }
    list_subsets(b, of_cheap_);
    work_ -= static_cast<std::int64_t>(3 * of_cheap_.size());  // sorting
    const Match match = best_match(
        a.cost - b.cost, of_dear_.size(), [&](std::size_t i) { return of_dear_[i].cost; },
        of_cheap_.size(), [&](std::size_t j) { return of_cheap_[j].cost; },
        [&](std::size_t i, std::size_t j) {
          const Subset& x = of_dear_[i];
          const Subset& y = of_cheap_[j];
          return is_allowed_count(a, b, static_cast<std::int64_t>(y.count()) - x.count()) &&
                 (!has_volume_ || is_room(a, b, x, y));
        });
    if (match.gain == 0) return {};
    return {match.gain, of_dear_[match.i], of_cheap_[match.j]};
  }

  // One unit against a run of b's units in sorted order, of about as many tokens: where both bins
  // are full, short sequences are the cheaper ones, and it takes several of them.
  [[nodiscard]] Exchange best_bundle(const Bin& a, const Bin& b) {
    const std::size_t n = b.units.size();
    runs_.assign(n + 1, {});
    for (std::size_t j = 0; j < n; ++j) {
      const Subset unit = single(b.units[j]);
      runs_[j + 1] = {runs_[j].cost + unit.cost, runs_[j].tokens + unit.tokens,
                      runs_[j].size + unit.size};
    }
    const Nanoseconds gap = a.cost - b.cost;
    Match best;           // i: unit of a, j: first of the run
    std::size_t end = 0;  // of the best run
    for (std::size_t i = 0; i < a.units.size(); ++i) {
      const Subset x = single(a.units[i]);
      const Tokens least = x.tokens - (limits_.capacity - b.tokens);
      const Tokens most = x.tokens + (limits_.capacity - a.tokens);
      std::size_t last = 0;
      for (std::size_t first = 0; first + 1 < n; ++first) {
        last = std::max(last, first + 2);  // shorter runs are subsets
        while (last <= n && runs_[last].tokens - runs_[first].tokens < least) ++last;
        for (std::size_t j = last; j <= n && j < last + 2; ++j) {
          const Nanoseconds moved = x.cost - (runs_[j].cost - runs_[first].cost);
          const Nanoseconds gain = std::min(moved, gap - moved);
          if (runs_[j].tokens - runs_[first].tokens > most || gain <= best.gain) continue;
          const std::int64_t size = runs_[j].size - runs_[first].size;
          const auto change = static_cast<std::int64_t>(j - first) - 1;
          if (a.size - x.size + size > limits_.max_size ||
              b.size + x.size - size > limits_.max_size || !is_allowed_count(a, b, change)) {
            continue;
          }
          best = {gain, i, first};
          end = j;
        }
      }
    }
    work_ -= static_cast<std::int64_t>(a.units.size() * n);
    if (best.gain == 0) return {};
    Exchange exchange{best.gain, single(a.units[best.i]), {}};
    for (std::size_t j = best.j; j < end; ++j) {
      exchange.bundle_from_cheap.push_back(b.units[j].unit);
    }
    return exchange;
  }

  void transfer(std::int32_t id, Bin& from, Bin& to, std::int32_t to_number) {
    if (id == none) return;
    const auto unit = static_cast<std::size_t>(id);
    const Entry entry{units_.costs[unit], id};
    from.units.erase(std::lower_bound(from.units.begin(), from.units.end(), entry));
    to.units.insert(std::lower_bound(to.units.begin(), to.units.end(), entry), entry);
    from.cost -= entry.cost;
    to.cost += entry.cost;
    from.tokens -= units_.tokens_of(unit);
    to.tokens += units_.tokens_of(unit);
    from.size -= units_.size_of(unit);
    to.size += units_.size_of(unit);
    bin_of_[unit] = to_number;
  }

  void apply(const Exchange& exchange, std::size_t dear, std::size_t cheap) {
    Bin& a = bin_at(dear);
    Bin& b = bin_at(cheap);
    const std::int32_t number_a = by_cost_[dear].unit;
    const std::int32_t number_b = by_cost_[cheap].unit;
    transfer(exchange.from_dear.first, a, b, number_b);
    transfer(exchange.from_dear.second, a, b, number_b);
    transfer(exchange.from_cheap.first, b, a, number_a);
    transfer(exchange.from_cheap.second, b, a, number_a);
    for (const std::int32_t unit : exchange.bundle_from_cheap) transfer(unit, b, a, number_a);
    listed_ = nullptr;
    // Both costs are now inside (cost of cheap, cost of dear): rotate them to their places.
    const Entry new_a{a.cost, number_a};
    const Entry new_b{b.cost, number_b};
    const auto begin = by_cost_.begin();
    const auto at = [&](std::size_t place) { return begin + static_cast<std::ptrdiff_t>(place); };
    const auto place_a = std::lower_bound(at(cheap), at(dear), new_a);
    std::move_backward(place_a, at(dear), at(dear + 1));
    *place_a = new_a;
    const auto place_b = std::lower_bound(at(cheap + 1), at(dear + 1), new_b);
    std::move(at(cheap + 1), place_b, at(cheap));
    *(place_b - 1) = new_b;
  }

  const Units& units_;
  const Limits& limits_;
  bool has_volume_;
  std::int64_t& work_;
  BinOf& bin_of_;
  Nanoseconds target_ = 0;
  std::pmr::monotonic_buffer_resource memory_;  // of the bins: one block instead of one for each
  std::vector<Bin> bins_;
  std::vector<Entry> by_cost_;  // {cost, bin}, ascending
  std::vector<Subset> of_dear_, of_cheap_;
  std::vector<Run> runs_;        // the first units of a bin, in sorted order
  const Bin* listed_ = nullptr;  // whose subsets of_dear_ holds
};

}  // namespace

Nanoseconds refine(const Units& units, const DearestFirst& order, std::int32_t num_bins,
                   const Limits& limits, RefineGoal goal, Nanoseconds target, std::int64_t& work,
                   BinOf& bin_of) {
  return Refinement(units, order, num_bins, limits, work, bin_of).run(goal, target);
}

}  // namespace isochron
