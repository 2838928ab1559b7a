// A group is led by its longest bundle: others that join it fit the tokens that the leader leaves,
// and those are short and cheap. So a leader on c ranks is worth at most v = min(the leader and its
// room at the best price, c ranks for the slot's time less what the leader wastes on c ranks). In a
// slot of time D no two groups have the same leader, and for any rent y of a rank the slot holds no
// more than N * y + sum of max(0, v - c * y) over all bundles. Where that is less than D, as where
// a slot waits for a bundle that has few like it, the slot has slack. Times are cut into levels:
// from D to the next one a slot gains no more than it lasts longer, by rents that rise with it.

#include "isochron/plan/bounds/slot_levels.h"

#include <algorithm>
#include <functional>

namespace isochron {

namespace {

constexpr std::size_t max_levels = 64;
constexpr double spacing = 0.02;          // of times
constexpr double suitable = 0.1;          // waste of a group, of the price of its leader
constexpr std::size_t max_leaders = 128;  // of groups that gain

}  // namespace

// A group that a bundle may lead: ranks, and what it is worth at most.
struct SlotLevels::Group {
  double ranks = 0;
  double value = 0;
};

SlotLevels::SlotLevels(const Problem& problem, Leaders& leaders)
    : leaders_(leaders),
      ranks_(problem.num_ranks()),
      capacity_(static_cast<double>(problem.capacity())) {}

std::vector<double> SlotLevels::times(std::size_t num_long) {
  std::vector<double> all;
  for (std::size_t i = 0; i < num_long; ++i) {
    for (const Lead& lead : leaders_.leads(i)) {
      if (lead.waste <= suitable * leaders_.price(i)) all.push_back(lead.time());
    }
  }
  std::sort(all.begin(), all.end(), std::greater<>());
  std::vector<double> kept;
  for (const double time : all) {
    if (kept.size() == max_levels) break;
    if (kept.empty() || time < kept.back() * (1 - spacing)) kept.push_back(time);
  }
  return kept;
}

// What is no denser than the rent gains nothing on any size, nor does what follows it.
bool SlotLevels::gains(std::size_t i, double rent) const {
  return leaders_.density(i) * capacity_ > rent;
}

// What a bundle may lead in a slot of a level that is best at some rent, by rising ranks.
std::vector<SlotLevels::Group> SlotLevels::groups_of(std::size_t i, const SlotLevel& level) {
  std::vector<Group> groups;
  for (const Lead& lead : leaders_.leads(i)) {
    if (!level.admits(lead)) continue;
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

// By the rent at which a slot holds least. Where it is too low more ranks gain by it than there
// are.
std::optional<SlotLevel> SlotLevels::find_scarce(double time, double next) {
  SlotLevel level{.time = time, .next = next};
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
  const double whole = time / ranks_;
  const double least = leaders_.size() > max_leaders
                           ? std::min(whole, leaders_.density(max_leaders) * capacity_)
                           : 0;
  if (least == whole) return std::nullopt;  // rents alone are the whole slot
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
  const Held held = held_at(high);
  if (held.sum >= time) return std::nullopt;
  level.rent = high;
  level.slack = time - held.sum;
  return level;
}

// At the densest bundle's price of a token no group is worth more than its ranks.
std::optional<SlotLevel> SlotLevels::find_dense(double time, double next,
                                                std::size_t num_apart) const {
  const double rent = num_apart < leaders_.size() ? leaders_.density(num_apart) * capacity_ : 0;
  if (rent * ranks_ >= time) return std::nullopt;
  return SlotLevel{.time = time, .next = next, .rent = rent, .slack = time - rent * ranks_};
}

}  // namespace isochron
