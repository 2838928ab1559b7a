// Prices that only long slots have room for.
//
// A group is led by its longest bundle: others that join it fit the tokens that the leader leaves,
// and those are short and cheap. So a leader on c ranks is worth at most v = min(the leader and its
// room at the best price, c ranks for the slot's time less what the leader wastes on c ranks). In a
// slot of time D no two groups have the same leader, and for any rent y of a rank the slot holds no
// more than N * y + sum of max(0, v - c * y) over all bundles. Where that is less than D, as where
// a slot waits for a bundle that has few like it, the bundles that need such a slot may cost more.
// Times are cut into levels: from D to the next one a slot gains no more than it lasts longer, by
// rents that rise with it; below the first level a rank's rent is its time, and a bundle may cost
// what it wastes there. Longest first, every bundle takes what all levels leave to it.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "isochron/plan/bounds/slot_prices.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t max_raised = 64;  // of the longest bundles
constexpr std::size_t enough_idle = 8;  // without a rise: the others have none either
constexpr std::size_t max_levels = 24;
constexpr std::size_t max_leaders = 128;  // of groups that gain

// The least of something that is known of leads, by size.
class LeastBySize {
 public:
  explicit LeastBySize(std::size_t num_sizes) : least_(num_sizes, infinite) {}

  void note(const Lead& lead, double value) {
    for (std::size_t i = lead.place; i <= lead.last; ++i) least_[i] = std::min(least_[i], value);
  }
  [[nodiscard]] double operator()(const Lead& lead) const {
    double least = infinite;
    for (std::size_t i = lead.place; i <= lead.last; ++i) least = std::min(least, least_[i]);
    return least;
  }

 private:
  std::vector<double> least_;
};

// A level of the times of slots: from `time` to `next`, which no longer belongs to it.
struct Level {
  double time = 0;
  double next = infinite;
  double rent = 0;           // of a rank
  double slack = 0;          // what a slot holds less than `time`
  LeastBySize least_unused;  // what a leader so far has left for others
};

class Surplus {
 public:
  Surplus(const Problem& problem, Leaders& leaders)
      : problem_(problem),
        leaders_(leaders),
        ranks_(problem.num_ranks()),
        capacity_(static_cast<double>(problem.capacity())),
        least_cost_(no_leads()),
        shortest_cost_(no_leads()) {}

  double sum() {
    find_levels();
    if (levels_.size() < 2) return 0;
    const std::size_t count = std::min(leaders_.size(), max_raised);
    fewest_tokens_ = leaders_.tokens_alone(count - 1);
    for (std::size_t i = 0; i < count; ++i) {
      for (const Lead& lead : leaders_.leads(i)) shortest_cost_.note(lead, lead.cost);
    }
    double sum = 0;
    std::size_t num_idle = 0;  // in a row
    for (std::size_t i = 0; i < count && num_idle < enough_idle; ++i) {
      const double rise = raise(i);
      sum += rise;
      num_idle = rise > 1e-7 * levels_.front().time ? 0 : num_idle + 1;
    }
    return sum;
  }

 private:
  LeastBySize no_leads() const { return LeastBySize(problem_.sizes().size()); }

  // What a group is worth less the rent of its ranks. Below the first level the rent is the time,
  // whatever that is.
  double gain(const Lead& lead, const Level& level) const {
    return level.time > 0 ? leaders_.value(lead, level.time) - lead.ranks * level.rent
                          : -lead.waste;
  }

  static bool fits(const Lead& lead, const Level& level) { return lead.time() < level.next; }

  // What is no denser than the rent gains nothing on any size, nor does what follows it.
  bool gains(std::size_t i, double rent) const { return leaders_.density(i) * capacity_ > rent; }

  double best_gain(std::size_t i, const Level& level) {
    double best = -infinite;
    for (const Lead& lead : leaders_.leads(i)) {
      if (fits(lead, level)) best = std::max(best, gain(lead, level));
    }
    // Several sizes as one may seem to gain where none of them does.
    return gains(i, level.rent) ? best : std::min(best, 0.0);
  }

  // A group that a bundle may lead: ranks, and what it is worth at most.
  struct Group {
    double ranks = 0;
    double value = 0;
  };

  // What a bundle may lead in a slot of a level that is best at some rent, by rising ranks.
  std::vector<Group> groups_of(std::size_t i, const Level& level) {
    std::vector<Group> groups;
    for (const Lead& lead : leaders_.leads(i)) {
      if (!fits(lead, level)) continue;
      const Group group{.ranks = lead.ranks, .value = leaders_.value(lead, level.time)};
      if (group.value <= (groups.empty() ? 0 : groups.back().value)) continue;
      // Those below the line from the one before them to this one never are.
      while (!groups.empty()) {
        const Group before = groups.size() > 1 ? groups[groups.size() - 2] : Group{};
        const Group& last = groups.back();
        if ((last.value - before.value) * (group.ranks - before.ranks) >
            (group.value - before.value) * (last.ranks - before.ranks)) {
          break;
        }
        groups.pop_back();
      }
      groups.push_back(group);
    }
    return groups;
  }

  // The rent by which a slot holds least. Where it is too low more ranks gain by it than there are.
  void find_rent(Level& level) {
    struct Held {
      double sum = 0;    // with all rents
      double ranks = 0;  // of groups that gain
    };
    std::vector<std::vector<Group>> groups;
    const auto held_at = [&](double rent) {
      Held held{.sum = ranks_ * rent};
      for (std::size_t i = 0; i < leaders_.size() && gains(i, rent); ++i) {
        if (i == groups.size()) groups.push_back(groups_of(i, level));
        Group best;
        double most = 0;
        for (const Group& group : groups[i]) {
          const double gain = group.value - rent * group.ranks;
          if (gain <= most) break;  // from here on they fall
          most = gain;
          best = group;
        }
        held.sum += most;
        held.ranks += best.ranks;
      }
      return held;
    };
    const double whole = level.time / ranks_;
    const double least = leaders_.size() > max_leaders
                             ? std::min(whole, leaders_.density(max_leaders) * capacity_)
                             : 0;
    double high = whole;
    double low = whole;
    for (double step = 1.0 / 64; low > least; step *= 2) {
      low = std::max(least, whole * (1 - step));
      if (held_at(low).ranks > ranks_) break;
      high = low;
    }
    for (int i = 0; i < 8 && high > low; ++i) {
      const double middle = low + (high - low) / 2;
      (held_at(middle).ranks > ranks_ ? low : high) = middle;
    }
    level.rent = high;
    level.slack = level.time - held_at(high).sum;
    if (level.slack > 0) return;
    level.rent = whole;  // a slot holds no more than its time
    level.slack = 0;
  }

  // From the longest bundles' times down to where slots are full; below that all is one level.
  void find_levels() {
    std::vector<double> times;
    for (std::size_t i = 0; i < std::min(leaders_.size(), max_raised); ++i) {
      const auto leads = leaders_.leads(i);
      const auto cheapest =
          std::min_element(leads.begin(), leads.end(),
                           [](const Lead& a, const Lead& b) { return a.waste < b.waste; });
      times.push_back(cheapest->time());
    }
    std::sort(times.begin(), times.end(), std::greater<>());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    times.resize(std::min(times.size(), max_levels));
    double next = infinite;
    for (const double time : times) {
      Level level{.time = time, .next = next, .least_unused = no_leads()};
      find_rent(level);
      if (level.slack <= 0) break;
      next = time;
      levels_.push_back(std::move(level));
    }
    levels_.push_back({.time = 0, .next = next, .least_unused = no_leads()});
  }

  // A bundle with a raised price may also join a group. Whoever leads it comes first in the order,
  // and what the slot is said to hold has a part for that leader: at least its rise and what its
  // group gains on any size. So far as it is more for this size it pays for what joins, shared by
  // as many as may join.
  double spare(std::size_t i, const Level& level) {
    double least = infinite;
    for (const Lead& lead : leaders_.leads(i)) {
      const double unused = level.least_unused(lead);
      const double tokens = lead.ranks * capacity_;
      if (unused == infinite || lead.tokens + leaders_.tokens_alone(i) > tokens) continue;
      if (lead.cost + least_cost_(lead) + lead.fixed >= level.next) continue;
      const double by_time = (level.next - lead.fixed) / shortest_cost_(lead);
      const double most = std::floor(std::min(tokens / fewest_tokens_, by_time) * (1 + 1e-9));
      least = std::min(least, unused / std::max(1.0, most - 1));
    }
    return least;
  }

  double raise(std::size_t i) {
    struct Part {
      double gain = 0;
      double spare = 0;
      double before = 0;  // of what the level's slots hold
    };
    std::vector<Part> parts;
    double rise = infinite;
    for (const Level& level : levels_) {
      Part part{.gain = best_gain(i, level), .spare = spare(i, level)};
      part.before = std::max(0.0, part.gain);
      rise = std::min(rise, part.before + level.slack + std::min(-part.gain, part.spare));
      parts.push_back(part);
    }
    rise = std::max(0.0, rise);
    if (rise == infinite) rise = 0;
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      Level& level = levels_[k];
      const Part& part = parts[k];
      const double after = std::max({0.0, part.gain + rise, rise - part.spare});
      level.slack -= after - part.before;
      for (const Lead& lead : leaders_.leads(i)) {
        if (!fits(lead, level)) continue;
        level.least_unused.note(lead, std::max(0.0, after - rise - gain(lead, level)));
      }
    }
    for (const Lead& lead : leaders_.leads(i)) least_cost_.note(lead, lead.cost);
    return rise;
  }

  const Problem& problem_;
  Leaders& leaders_;
  double ranks_;
  double capacity_;
  std::vector<Level> levels_;  // longest first, the last one is below all others
  LeastBySize least_cost_;     // of what was raised so far
  LeastBySize shortest_cost_;  // of all that is raised
  double fewest_tokens_ = 1;   // of all that is raised
};

}  // namespace

double price_surplus(const Problem& problem, Leaders& leaders) {
  return Surplus(problem, leaders).sum();
}

}  // namespace isochron
