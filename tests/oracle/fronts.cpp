// Step time where every rank is in every slot, and a group starts when its last member is free.
//
// What is placed so far is known by its units and by the time at which each rank is free. Of two
// such states with the same units the one with no later time is as good, so only the others are
// kept. A state is dropped if what is left cannot end by the target: its rank time does not fit
// beside that of the state, or a unit is late wherever it goes. Targets grow until a plan meets
// one; from then on the target is to be faster.

#include <algorithm>
#include <array>

#include "isochron/core/require.h"
#include "tests/oracle/schedules.h"

namespace isochron::oracle {

namespace {

constexpr std::size_t most_ranks = 8;
using Times = std::array<Nanoseconds, most_ranks>;  // of each rank; 0 beyond the last

bool is_no_later(const Times& a, const Times& b) {
  for (std::size_t i = 0; i < most_ranks; ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

class Front {
 public:
  void add(const Times& times) {
    for (const Times& other : times_) {
      if (is_no_later(other, times)) return;
    }
    std::erase_if(times_, [&](const Times& other) { return is_no_later(times, other); });
    times_.push_back(times);
  }
  [[nodiscard]] const std::vector<Times>& times() const { return times_; }

 private:
  std::vector<Times> times_;
};

Nanoseconds latest(const Times& times, RankRange ranks) {
  const auto first = times.begin() + ranks.first;
  return *std::max_element(first, first + ranks.size);
}

Nanoseconds latest(const Times& times) { return *std::max_element(times.begin(), times.end()); }

// The table, a target, and whether a state can still meet it.
struct Hope {
  const GroupTable& table;
  const std::vector<Nanoseconds>& areas;
  const std::vector<Nanoseconds>& fastest;  // at set * num_ranks + rank
  Nanoseconds target;
  std::optional<Nanoseconds> best = {};

  void end_at(Nanoseconds time) {
    if (time > target) return;
    best = time;
    target = time - 1;
  }

  // The time that a rank has left counts only if a unit of the rest can use it.
  [[nodiscard]] bool is_left(UnitSet rest, const Times& times) const {
    Nanoseconds room = 0;
    for (std::size_t i = 0; i < table.num_ranks; ++i) {
      if (times[i] > target) return false;
      const Nanoseconds left = target - times[i];
      if (left < fastest[rest * table.num_ranks + i]) continue;
      room += std::min(left, areas[rest] - room);  // enough is enough: no sum leaves 64 bits
    }
    if (room < areas[rest]) return false;
    for (std::size_t i = 0; i < table.num_units; ++i) {
      if ((rest >> i & 1) != 0 && !has_place(UnitSet{1} << i, times)) return false;
    }
    return true;
  }

  [[nodiscard]] bool has_place(UnitSet unit, const Times& times) const {
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      const Nanoseconds cost = table.cost(unit, r);
      if (cost < never && latest(times, table.ranges[r]) + cost <= target) return true;
    }
    return false;
  }
};

Times with_group(Times times, RankRange ranks, Nanoseconds cost) {
  const Nanoseconds end = latest(times, ranks) + cost;
  for (std::int64_t i = 0; i < ranks.size; ++i)
    times[static_cast<std::size_t>(ranks.first + i)] = end;
  return times;
}

// Slots are filled rank by rank, one after the other. A slot of placeholders alone helps nobody.
class EqualSearch {
 public:
  explicit EqualSearch(Hope& hope)
      : hope_(hope), fronts_(2 * width() * (hope.table.all() + std::size_t{1})) {}

  void run() {
    const GroupTable& table = hope_.table;
    front(0, 0, SlotHas::nothing).add({});
    for (UnitSet placed = 0; placed <= table.all(); ++placed) {
      for (std::size_t rank = 1; rank < table.num_ranks; ++rank) {
        extend(placed, rank, SlotHas::units);
      }
      for (const Times& times : front(placed, table.num_ranks, SlotHas::units).times()) {
        front(placed, 0, SlotHas::nothing).add(times);
        if (placed == table.all()) hope_.end_at(latest(times));
      }
      for (std::size_t rank = 0; rank < table.num_ranks; ++rank) {
        extend(placed, rank, SlotHas::nothing);
      }
    }
  }

 private:
  enum class SlotHas { nothing, units };

  [[nodiscard]] std::size_t width() const { return hope_.table.num_ranks + 1; }

  // With ranks 0 to rank - 1 of the current slot filled.
  Front& front(UnitSet placed, std::size_t rank, SlotHas has) {
    return fronts_[(placed * width() + rank) * 2 + (has == SlotHas::units ? 1 : 0)];
  }

  void extend(UnitSet placed, std::size_t rank, SlotHas has) {
    const GroupTable& table = hope_.table;
    const UnitSet rest = table.all() ^ placed;
    for (const Times& times : front(placed, rank, has).times()) {
      if (table.placeholder_costs[rank] < never) {
        const RankRange one{static_cast<std::int64_t>(rank), 1};
        const Times next = with_group(times, one, table.placeholder_costs[rank]);
        if (hope_.is_left(rest, next)) front(placed, rank + 1, has).add(next);
      }
      for (std::size_t r = 0; r < table.ranges.size(); ++r) {
        const RankRange ranks = table.ranges[r];
        if (static_cast<std::size_t>(ranks.first) != rank) continue;
        for_each_part(rest, [&](UnitSet group) {
          if (group == 0 || table.cost(group, r) == never) return;
          const Times next = with_group(times, ranks, table.cost(group, r));
          if (!hope_.is_left(rest ^ group, next)) return;
          front(placed | group, rank + static_cast<std::size_t>(ranks.size), SlotHas::units)
              .add(next);
        });
      }
    }
  }

  Hope& hope_;
  std::vector<Front> fronts_;
};

// The least cost of a group with some unit of a set on each rank.
std::vector<Nanoseconds> fastest_units(const GroupTable& table) {
  std::vector<Nanoseconds> fastest((table.all() + std::size_t{1}) * table.num_ranks, never);
  for (UnitSet set = 1; set <= table.all(); ++set) {
    for (std::size_t unit = 0; unit < table.num_units; ++unit) {
      if ((set >> unit & 1) == 0) continue;
      for (std::size_t r = 0; r < table.ranges.size(); ++r) {
        for (std::int64_t i = 0; i < table.ranges[r].size; ++i) {
          const auto rank = static_cast<std::size_t>(table.ranges[r].first + i);
          Nanoseconds& known = fastest[set * table.num_ranks + rank];
          known = std::min(known, table.cost(UnitSet{1} << unit, r));
        }
      }
    }
  }
  return fastest;
}

}  // namespace

std::optional<Nanoseconds> best_equal(const GroupTable& table, Nanoseconds limit) {
  ISOCHRON_ASSERT(table.num_ranks <= most_ranks);
  const std::vector<Nanoseconds> areas = least_areas(table);
  const std::vector<Nanoseconds> fastest = fastest_units(table);
  return best_by_targets(table, limit, [&](Nanoseconds target) {
    Hope hope{table, areas, fastest, target};
    EqualSearch(hope).run();
    return hope.best;
  });
}

}  // namespace isochron::oracle
