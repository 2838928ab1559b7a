// Step time of groups on any ranges, with free counts.
//
// A step takes at least as long as the most loaded rank. So first the units are dealt, largest
// first, each to a group there is or to a new one on some range, as long as no rank has more load
// than the target and the rest fits beside it. Then the groups are ordered, each starting when its
// last rank is free. Targets grow until a plan meets one; from then on the target is to be faster.

#include <algorithm>
#include <numeric>

#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

struct Placed {
  UnitSet set = 0;
  std::size_t range = 0;
  Nanoseconds cost = 0;
};

class Dealing {
 public:
  Dealing(const GroupTable& table, Nanoseconds target) : table_(table), target_(target) {
    units_.resize(table.num_units);
    std::iota(units_.begin(), units_.end(), std::size_t{0});
    std::vector<Nanoseconds> least(table.num_units);
    for (const std::size_t unit : units_) least[unit] = least_extra_area(unit);
    std::sort(units_.begin(), units_.end(),
              [&](std::size_t a, std::size_t b) { return least[a] > least[b]; });
    area_from_.assign(table.num_units + 1, 0);
    for (std::size_t i = table.num_units; i-- > 0;) {
      area_from_[i] = area_from_[i + 1] + least[units_[i]];
    }
    loads_.assign(table.num_ranks, 0);
  }

  std::optional<Nanoseconds> run() {
    deal(0);
    return best_;
  }

 private:
  // What a unit adds at least to the rank time of any group that it joins or makes.
  [[nodiscard]] Nanoseconds least_extra_area(std::size_t unit) const {
    const UnitSet one = UnitSet{1} << unit;
    Nanoseconds least = never;
    for (std::size_t r = 0; r < table_.ranges.size(); ++r) {
      for (UnitSet set = 1; set <= table_.all(); ++set) {
        if ((set & one) == 0 || table_.cost(set, r) == never) continue;
        const Nanoseconds without = set == one ? 0 : table_.cost(set ^ one, r);
        least = std::min(least, (table_.cost(set, r) - without) * table_.ranges[r].size);
      }
    }
    return least;
  }

  [[nodiscard]] bool add_load(std::size_t range, Nanoseconds extra) {
    const RankRange ranks = table_.ranges[range];
    const auto first = loads_.begin() + ranks.first;
    bool is_met = true;
    for (auto load = first; load != first + ranks.size; ++load) {
      *load += extra;
      is_met = is_met && *load <= target_;
    }
    area_ += extra * ranks.size;
    return is_met;
  }

  void deal(std::size_t place) {
    if (place == units_.size()) {
      order(std::vector<Nanoseconds>(table_.num_ranks, 0), loads_,
            (UnitSet{1} << groups_.size()) - 1);
      return;
    }
    const UnitSet one = UnitSet{1} << units_[place];
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Placed before = groups_[g];
      const Nanoseconds cost = table_.cost(before.set | one, before.range);
      if (cost == never) continue;
      groups_[g] = {before.set | one, before.range, cost};
      deal_on(before.range, cost - before.cost, place);
      groups_[g] = before;
    }
    for (std::size_t r = 0; r < table_.ranges.size(); ++r) {
      const Nanoseconds cost = table_.cost(one, r);
      if (cost == never) continue;
      groups_.push_back({one, r, cost});
      deal_on(r, cost, place);
      groups_.pop_back();
    }
  }

  void deal_on(std::size_t range, Nanoseconds extra, std::size_t place) {
    const bool is_met = add_load(range, extra);
    const auto num_ranks = static_cast<Nanoseconds>(table_.num_ranks);
    if (is_met && (area_ + area_from_[place + 1] - 1) / num_ranks <= target_) deal(place + 1);
    (void)add_load(range, -extra);
  }

  // Groups join in the order in which they start. So whatever joins later starts no earlier than
  // the last group did, and a rank that is free before that is idle until then.
  void order(const std::vector<Nanoseconds>& free, const std::vector<Nanoseconds>& loads,
             UnitSet rest) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      if (free[i] + loads[i] > target_) return;
    }
    if (rest == 0) {
      best_ = *std::max_element(free.begin(), free.end());
      target_ = *best_ - 1;
      return;
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if ((rest >> g & 1) == 0) continue;
      const RankRange ranks = table_.ranges[groups_[g].range];
      const auto first = free.begin() + ranks.first;
      const Nanoseconds start = *std::max_element(first, first + ranks.size);
      std::vector<Nanoseconds> next = free;
      std::vector<Nanoseconds> left = loads;
      for (Nanoseconds& time : next) time = std::max(time, start);
      for (std::int64_t i = 0; i < ranks.size; ++i) {
        const auto rank = static_cast<std::size_t>(ranks.first + i);
        next[rank] = start + groups_[g].cost;
        left[rank] -= groups_[g].cost;
      }
      // A rank without load may be idle as long as it likes.
      for (std::size_t i = 0; i < next.size(); ++i) {
        if (left[i] == 0 && next[i] == start) next[i] = free[i];
      }
      order(next, left, rest ^ (UnitSet{1} << g));
    }
  }

  const GroupTable& table_;
  Nanoseconds target_;
  std::vector<std::size_t> units_;      // largest first
  std::vector<Nanoseconds> area_from_;  // of the units from a place on
  std::vector<Nanoseconds> loads_;      // of each rank
  Nanoseconds area_ = 0;
  std::vector<Placed> groups_;
  std::optional<Nanoseconds> best_;
};

}  // namespace

std::optional<Nanoseconds> best_free(const GroupTable& table, Nanoseconds limit) {
  return best_by_targets(table, limit,
                         [&](Nanoseconds target) { return Dealing(table, target).run(); });
}

}  // namespace isochron::oracle
