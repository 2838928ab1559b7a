// Prices that only long slots have room for, all at once.
//
// A slot that waits for long bundles holds less than it takes, because few others fill it
// (SlotLevel). So the bundles that need such a slot may cost more: their rises are a linear
// program, in which no set of leaders whose groups fit the ranks side by side may rise by more than
// the slot has left. The sets that limit most are found by filling a knapsack of ranks at every
// level of time, again and again with the rises so far (Gilmore and Gomory, 1961). Below the last
// level slots are full, and a bundle may rise by what it wastes there.
//
// A rise counts only after the knapsacks of all levels were filled at these very prices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "isochron/plan/bounds/rank_knapsack.h"
#include "isochron/plan/bounds/rise_program.h"
#include "isochron/plan/bounds/slot_levels.h"
#include "isochron/plan/bounds/slot_prices.h"

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t max_raised = 64;  // of the longest bundles
constexpr int max_rounds = 24;
constexpr int max_pivots = 200;       // of each
constexpr double enough = 0.05;       // of the sum: what is left to find
constexpr double usual_rise = 0.03;   // of a price
constexpr double joined_rise = 0.05;  // the most, of what waits for a slow network

class PriceProgram {
 public:
  PriceProgram(const Problem& problem, Leaders& leaders, std::int64_t max_work)
      : problem_(problem),
        leaders_(leaders),
        max_work_(max_work),
        capacity_(static_cast<double>(problem.capacity())),
        num_raised_(std::min(leaders.size(), num_affordable(problem, max_work))) {}

  double sum() {
    find_limits();
    find_groups();
    const double last = add_knapsacks();
    if (knapsacks_.empty()) return 0;
    for (std::size_t i = 0; i < num_raised_; ++i) {
      for (const Lead& lead : leaders_.leads(i)) {
        if (lead.time() < last) most_[i] = std::min(most_[i], lead.waste);
      }
      most_[i] = std::max(0.0, most_[i]);
    }
    return best_sum();
  }

 private:
  // Knapsacks of so many bundles, at a level of time for each, take a part of the work.
  static std::size_t num_affordable(const Problem& problem, std::int64_t max_work) {
    const double for_a_bundle = static_cast<double>(problem.sizes().size()) * problem.num_ranks();
    const double affordable = std::sqrt(static_cast<double>(max_work) / for_a_bundle);
    return static_cast<std::size_t>(std::clamp(affordable, 1.0, static_cast<double>(max_raised)));
  }

  // A group that a bundle may lead.
  struct Group {
    std::size_t leader = 0;
    std::int32_t size = 1;
    double time = 0;        // of the leader alone
    double area = 0;        // of the leader, over all ranks
    double efficiency = 1;  // of others
    double by_tokens = 0;   // what all are worth
  };

  // Of what joins a group, rises included.
  double efficiency(std::size_t place) {
    return std::min(1.0, leaders_.efficiency(place) * (1 + joined_rise));
  }

  // A bundle that joins a group of a longer one rises by no more than it wastes there.
  void find_limits() {
    most_.assign(num_raised_, infinite);
    density_.assign(num_raised_ + 1, 0);
    for (std::size_t i = num_raised_; i-- > 0;) {
      density_[i] = density_[i + 1];
      if (i == 0) break;
      for (const Lead& lead : leaders_.leads(i)) {
        const double room = lead.ranks * capacity_ - lead.tokens;
        if (leaders_.tokens_alone(i - 1) > room) continue;
        const double area = leaders_.price(i) + lead.waste;
        most_[i] = std::min(most_[i], efficiency(lead.place) * area - leaders_.price(i));
      }
      // What never joins has no limit so far, and no leader has room for it.
      if (most_[i] == infinite) continue;
      density_[i] = std::max(density_[i], most_[i] / leaders_.tokens_alone(i));
    }
  }

  // What joins a leader on its group rises by that at most.
  double rise_of_others(std::size_t leader, const Lead& lead) const {
    const double room = lead.ranks * capacity_ - lead.tokens;
    std::size_t first = leader + 1;
    while (first < num_raised_ && leaders_.tokens_alone(first) > room) ++first;
    return room * density_[std::min(first, num_raised_)];
  }

  void find_groups() {
    for (std::size_t i = 0; i < num_raised_; ++i) {
      for (const Lead& lead : leaders_.leads(i)) {
        for (std::size_t place = lead.place; place <= lead.last; ++place) {
          groups_.push_back({.leader = i,
                             .size = problem_.sizes()[place],
                             .time = lead.time(),
                             .area = leaders_.price(i) + lead.waste,
                             .efficiency = efficiency(place),
                             .by_tokens = lead.worth + rise_of_others(i, lead)});
        }
      }
    }
  }

  // From the longest slots down to where they are full; returns the time of the last level.
  double add_knapsacks() {
    SlotLevels levels(problem_, leaders_);
    double next = infinite;
    for (const double time : levels.times(num_raised_)) {
      const auto level = levels.find_dense(time, next, num_raised_);
      if (!level) break;
      RankKnapsack knapsack = knapsack_of(*level);
      if (knapsack.room() < 0) break;
      for (std::size_t i = 0; i < num_raised_; ++i) {
        most_[i] = std::min(most_[i], knapsack.room_of(i));
      }
      knapsacks_.push_back(std::move(knapsack));
      next = time;
    }
    return next;
  }

  RankKnapsack knapsack_of(const SlotLevel& level) {
    RankKnapsack knapsack(num_raised_, problem_.num_ranks(), level.slack);
    for (const Group& group : groups_) {
      if (group.time >= level.next) continue;
      // Time of all ranks, without what the leader takes.
      const double left = group.size * level.time / problem_.num_ranks() - group.area;
      const double by_time =
          leaders_.price(group.leader) + (left > 0 ? group.efficiency * left : left);
      const double gain = std::min(by_time, group.by_tokens) - group.size * level.rent;
      knapsack.add(group.leader, group.size, gain, most_[group.leader]);
    }
    knapsack.close(table_);
    return knapsack;
  }

  // The largest sum of rises that all levels have room for, or close to it. Half way between rises
  // that have room and those that the limits so far allow, more limits are found; without what
  // exceeds them the rises there have room again.
  double best_sum() {
    RiseProgram program(most_);
    std::vector<double> safe(num_raised_, 0);
    double sum = 0;
    for (int round = 0; round < max_rounds && work_ < max_work_; ++round) {
      program.solve(max_pivots);
      std::vector<double> rises = safe;
      double more = 0;
      for (std::size_t i = 0; i < num_raised_; ++i) {
        const double value = std::clamp(program.values()[i], 0.0, most_[i]);
        more += value - safe[i];
        rises[i] = round == 0 ? std::min(value, usual_rise * leaders_.price(i))
                              : safe[i] + (value - safe[i]) / 2;
      }
      if (more <= enough * sum) break;
      if (!cut_down(rises, program)) continue;
      const double total = std::accumulate(rises.begin(), rises.end(), 0.0);
      if (total <= sum) continue;
      sum = total;
      safe = std::move(rises);
    }
    return sum;
  }

  // Takes off what exceeds a level, until none has less room than the rises need; false if that
  // takes too long.
  bool cut_down(std::vector<double>& rises, RiseProgram& program) {
    constexpr int max_cuts = 16;
    for (RankKnapsack& knapsack : knapsacks_) {
      for (int cuts = 0;; ++cuts) {
        RankKnapsack::Filled filled = knapsack.filled(rises, table_);
        work_ += filled.work;
        if (filled.excess <= 0) break;
        if (cuts == max_cuts) return false;
        double together = 0;
        for (const std::size_t i : filled.leaders) together += rises[i];
        const double limit = std::max(0.0, together - filled.excess);
        for (const std::size_t i : filled.leaders) rises[i] *= limit / together;
        std::vector<RiseProgram::Part> parts;
        for (const std::size_t i : filled.leaders) parts.push_back({.value = i});
        program.add(std::move(parts), limit);
      }
    }
    return true;
  }

  const Problem& problem_;
  Leaders& leaders_;
  std::int64_t max_work_;
  std::int64_t work_ = 0;  // sums of knapsacks
  double capacity_;
  std::size_t num_raised_;
  std::vector<double> most_;     // rises
  std::vector<double> density_;  // the most that a token rises, of this one and all that follow
  std::vector<Group> groups_;
  std::vector<RankKnapsack> knapsacks_;
  RankKnapsack::Table table_;
};

}  // namespace

double price_program(const Problem& problem, Leaders& leaders, std::int64_t max_work) {
  return PriceProgram(problem, leaders, max_work).sum();
}

}  // namespace isochron
