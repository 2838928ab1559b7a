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

struct GroupTable {
  std::size_t num_units = 0;  // sequences, or prompt groups that stay in one micro-batch
  std::size_t num_ranks = 0;
  std::vector<RankRange> ranges;               // admissible ones, and all ranks
  std::vector<Nanoseconds> costs;              // at set * ranges.size() + range
  std::vector<double> bytes;                   // of activations on each rank, likewise
  std::vector<Nanoseconds> placeholder_costs;  // of each rank
  // At set * ranges.size() + range: such a group could give a unit to ranks that have none.
  std::vector<bool> can_give;
  std::vector<std::size_t> kin;  // of each unit: equal for those that share a set of ranks

  [[nodiscard]] UnitSet all() const { return (UnitSet{1} << num_units) - 1; }
  [[nodiscard]] Nanoseconds cost(UnitSet set, std::size_t range) const {
    return costs[set * ranges.size() + range];
  }
  [[nodiscard]] double activation_bytes(UnitSet set, std::size_t range) const {
    return bytes[set * ranges.size() + range];
  }
  // The table in which all units like `kind` run on one range.
  [[nodiscard]] GroupTable with_kin_on(std::size_t kind, std::size_t range) const;
};

// The same groups without placeholders, and then every way to allow some: where there are
// placeholders there is no group that could give them a unit. Units may go to any ranks, or only to
// those where they are if prompt groups are kept on ranks. Where activations are limited, which a
// unit that is given away might break, placeholders stand anywhere.
[[nodiscard]] std::vector<GroupTable> tables_for_equal_counts(const GroupTable& table,
                                                              const PlanOptions& options);

// The table for the first `num_units` units of a question, all of them if none is given. `options`
// are resolved. Nothing if some unit fits nowhere.
[[nodiscard]] std::optional<GroupTable> group_table(const Batch& batch, const Topology& topology,
                                                    const CostModel& cost,
                                                    const PlanOptions& options,
                                                    std::optional<std::size_t> num_units = {});

// For each set the least rank time of any division of it into groups, whatever the order.
[[nodiscard]] std::vector<Nanoseconds> least_areas(const GroupTable& table);

// For each set the least duration of one slot that holds just these units and fills every rank, if
// need be with placeholders.
[[nodiscard]] std::vector<Nanoseconds> slot_costs(const GroupTable& table);

// Calls visit(part) for every part of a set, the empty one and the whole included.
template <class Visit>
void for_each_part(UnitSet set, Visit visit) {
  for (UnitSet part = set;; part = (part - 1) & set) {
    visit(part);
    if (part == 0) return;
  }
}

}  // namespace isochron::oracle
