// Step time of groups on ranges that nest: any two are apart, or one lies in the other.
//
// Let every rank run its groups widest first. Before a group, each of its ranks has run the groups
// on the same wider ranges and no others, so no rank ever waits, and the step takes as long as the
// most loaded rank. For a range and a set of units: some of them run on the whole range, divided
// into groups, and the rest is shared out to the ranges right inside.

#include <algorithm>

#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

using CostOfSet = std::vector<Nanoseconds>;

bool holds(RankRange outer, RankRange inner) {
  return outer.first <= inner.first && inner.first + inner.size <= outer.first + outer.size;
}

bool are_apart(RankRange a, RankRange b) {
  return a.first + a.size <= b.first || b.first + b.size <= a.first;
}

// One range after the other: the least sum of groups that the set is divided into.
CostOfSet costs_in_turn(const GroupTable& table, std::size_t range) {
  CostOfSet best(table.all() + std::size_t{1}, never);
  best[0] = 0;
  for (UnitSet set = 1; set <= table.all(); ++set) {
    for_each_part(set, [&](UnitSet part) {
      if (part == 0) return;
      best[set] = std::min(best[set], table.cost(part, range) + best[set ^ part]);
    });
  }
  return best;
}

template <class Join>
CostOfSet joined(const CostOfSet& a, const CostOfSet& b, Join join) {
  CostOfSet best(a.size(), never);
  for (UnitSet set = 0; set < a.size(); ++set) {
    for_each_part(
        set, [&](UnitSet part) { best[set] = std::min(best[set], join(a[part], b[set ^ part])); });
  }
  return best;
}

// The set on the ranges inside `outer`, which is not one of them.
CostOfSet costs_inside(const GroupTable& table, RankRange outer) {
  CostOfSet best(table.all() + std::size_t{1}, never);
  best[0] = 0;
  for (std::size_t r = 0; r < table.ranges.size(); ++r) {
    const RankRange range = table.ranges[r];
    if (range == outer || !holds(outer, range)) continue;
    const bool is_right_inside =
        std::none_of(table.ranges.begin(), table.ranges.end(), [&](RankRange between) {
          return between != range && between != outer && holds(outer, between) &&
                 holds(between, range);
        });
    if (!is_right_inside) continue;
    const CostOfSet here =
        joined(costs_in_turn(table, r), costs_inside(table, range), std::plus<Nanoseconds>());
    best = joined(here, best, [](Nanoseconds a, Nanoseconds b) { return std::max(a, b); });
  }
  return best;
}

}  // namespace

bool has_nested_ranges(const GroupTable& table) {
  for (const RankRange a : table.ranges) {
    for (const RankRange b : table.ranges) {
      if (!are_apart(a, b) && !holds(a, b) && !holds(b, a)) return false;
    }
  }
  return true;
}

std::optional<Nanoseconds> best_nested(const GroupTable& table, Nanoseconds limit) {
  const RankRange more_than_all{0, static_cast<std::int64_t>(table.num_ranks) + 1};
  const Nanoseconds best = costs_inside(table, more_than_all).back();
  return best < limit ? std::optional(best) : std::nullopt;
}

}  // namespace isochron::oracle
