#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

// What every group that a plan of a tiny batch may hold costs: one number for each set of units and
// each range of ranks. All that the exhaustive searches know of a question stands here. Nothing
// comes from the planner but the cost of a sequence.

namespace isochron::oracle {

using UnitSet = std::uint32_t;  // bit i: unit i

// Above every cost: not allowed. Two of them still add up.
inline constexpr Nanoseconds never = max_total_cost / 2;

// How every rank comes to be in every slot, where counts are equal.
enum class Filling {
  full,          // every rank of a slot has units
  placeholders,  // ranks may go without, but then no group holds units that could be apart
};

struct GroupTable {
  std::size_t num_units = 0;  // sequences, or prompt groups that stay in one micro-batch
  std::size_t num_ranks = 0;
  std::vector<RankRange> ranges;               // admissible ones, and all ranks
  std::vector<Nanoseconds> costs;              // at set * ranges.size() + range
  std::vector<Nanoseconds> placeholder_costs;  // of each rank
  std::vector<std::size_t> kin;  // of each unit: equal for those that share a set of ranks

  [[nodiscard]] UnitSet all() const { return (UnitSet{1} << num_units) - 1; }
  [[nodiscard]] Nanoseconds cost(UnitSet set, std::size_t range) const {
    return costs[set * ranges.size() + range];
  }
  // Units of the set could not be in groups apart: there is one, or they are kin.
  [[nodiscard]] bool is_inseparable(UnitSet set) const;
  // The table in which all units like `kind` run on one range.
  [[nodiscard]] GroupTable with_kin_on(std::size_t kind, std::size_t range) const;
};

// The table for the first `num_units` units of a question, all of them if none is given. `options`
// are resolved. Nothing if some unit fits nowhere.
[[nodiscard]] std::optional<GroupTable> group_table(const Batch& batch, const Topology& topology,
                                                    const CostModel& cost,
                                                    const PlanOptions& options,
                                                    std::optional<std::size_t> num_units = {});

// For each set the least rank time of any division of it into groups, whatever the order.
[[nodiscard]] std::vector<Nanoseconds> least_areas(const GroupTable& table);

// For each set the least duration of one slot that holds just these units and fills every rank.
[[nodiscard]] std::vector<Nanoseconds> slot_costs(const GroupTable& table, Filling filling);

// Calls visit(part) for every part of a set, the empty one and the whole included.
template <class Visit>
void for_each_part(UnitSet set, Visit visit) {
  for (UnitSet part = set;; part = (part - 1) & set) {
    visit(part);
    if (part == 0) return;
  }
}

}  // namespace isochron::oracle
