#include <algorithm>

#include "tests/oracle/schedules.h"

namespace isochron::oracle {

Nanoseconds floor_of(const GroupTable& table) {
  const Nanoseconds area = least_areas(table).back();
  if (area == never) return never;
  Nanoseconds floor = area / static_cast<Nanoseconds>(table.num_ranks);
  for (std::size_t i = 0; i < table.num_units; ++i) {
    Nanoseconds fastest = never;
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      fastest = std::min(fastest, table.cost(UnitSet{1} << i, r));
    }
    floor = std::max(floor, fastest);
  }
  return floor;
}

}  // namespace isochron::oracle
