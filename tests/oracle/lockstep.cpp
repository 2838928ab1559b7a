// Step time where all ranks wait for each other after every slot: the slots' durations add up, so
// all that counts is which units share a slot.

#include <algorithm>

#include "tests/oracle/schedules.h"

namespace isochron::oracle {

std::optional<Nanoseconds> best_lockstep(const GroupTable& table, Nanoseconds limit) {
  const std::vector<Nanoseconds> slot = slot_costs(table);
  std::vector<Nanoseconds> best(slot.size(), never);
  best[0] = 0;
  for (UnitSet set = 1; set <= table.all(); ++set) {
    for_each_part(set, [&](UnitSet part) {
      if (part != 0) best[set] = std::min(best[set], slot[part] + best[set ^ part]);
    });
  }
  return best.back() < limit ? std::optional(best.back()) : std::nullopt;
}

}  // namespace isochron::oracle
