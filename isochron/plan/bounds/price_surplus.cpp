// Prices that only long slots have room for, one by one.
//
// A slot that waits for long bundles holds less than it takes, because few others fill it
// (SlotLevel). So the bundles that need such a slot may cost more. Below the last level a rank's
// rent is its time, and a bundle may cost what it wastes there. Longest first, every bundle takes
// what all levels leave to it.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "isochron/plan/bounds/slot_levels.h"
#include "isochron/plan/bounds/slot_prices.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t max_raised = 64;  // of the longest bundles
constexpr std::size_t enough_idle = 8;  // without a rise: the others have none either
constexpr std::size_t max_levels = 24;

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

struct Level : SlotLevel {
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

  // What is no denser than the rent gains nothing on any size, nor does what follows it.
  bool gains(std::size_t i, double rent) const { return leaders_.density(i) * capacity_ > rent; }

  double best_gain(std::size_t i, const Level& level) {
    double best = -infinite;
    for (const Lead& lead : leaders_.leads(i)) {
      if (level.admits(lead)) best = std::max(best, gain(lead, level));
    }
    // Several sizes as one may seem to gain where none of them does.
    return gains(i, level.rent) ? best : std::min(best, 0.0);
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
    SlotLevels levels(problem_, leaders_);
    for (const double time : times) {
      const auto level = levels.find_scarce(time, next);
      if (!level) break;
      next = time;
      levels_.push_back({*level, no_leads()});
    }
    levels_.push_back({{.next = next}, no_leads()});
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
        if (!level.admits(lead)) continue;
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
