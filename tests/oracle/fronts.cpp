// Step time where a group starts when its last member is free, by sets and times.
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

// What the searches share: the table, a target, and whether a state can still meet it.
struct Hope {
  const GroupTable& table;
  const std::vector<Nanoseconds>& areas;
  Nanoseconds target;
  std::optional<Nanoseconds> best = {};

  void end_at(Nanoseconds time) {
    if (time > target) return;
    best = time;
    target = time - 1;
  }

  [[nodiscard]] bool is_left(UnitSet rest, const Times& times) const {
    Nanoseconds area = areas[rest];
    for (std::size_t i = 0; i < table.num_ranks; ++i) {
      if (times[i] > target) return false;
      area += times[i];
    }
    if (area / static_cast<Nanoseconds>(table.num_ranks) > target) return false;
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

// Groups join in the order in which they start. So whatever joins later starts no earlier than the
// last group did, and a rank that is free before that is idle until then.
void search_free(Hope& hope) {
  const GroupTable& table = hope.table;
  std::vector<Front> fronts(table.all() + std::size_t{1});
  fronts[0].add({});
  for (UnitSet placed = 0; placed < table.all(); ++placed) {
    const UnitSet rest = table.all() ^ placed;
    for (const Times& times : fronts[placed].times()) {
      for (std::size_t r = 0; r < table.ranges.size(); ++r) {
        const RankRange ranks = table.ranges[r];
        const Nanoseconds start = latest(times, ranks);
        Times waited = times;
        for (std::size_t i = 0; i < table.num_ranks; ++i) waited[i] = std::max(times[i], start);
        for_each_part(rest, [&](UnitSet group) {
          if (group == 0 || table.cost(group, r) > hope.target - start) return;
          const Times next = with_group(waited, ranks, table.cost(group, r));
          if (group == rest) {
            hope.end_at(latest(next));
          } else if (hope.is_left(rest ^ group, next)) {
            fronts[placed | group].add(next);
          }
        });
      }
    }
  }
}

// Slots are filled rank by rank, one after the other. A slot of placeholders alone helps nobody.
class EqualSearch {
 public:
  EqualSearch(Hope& hope, Filling filling)
      : hope_(hope),
        filling_(filling),
        fronts_(2 * width() * (hope.table.all() + std::size_t{1})) {}

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
      if (filling_ == Filling::placeholders) {
        const RankRange one{static_cast<std::int64_t>(rank), 1};
        const Times next = with_group(times, one, table.placeholder_costs[rank]);
        if (hope_.is_left(rest, next)) front(placed, rank + 1, has).add(next);
      }
      for (std::size_t r = 0; r < table.ranges.size(); ++r) {
        const RankRange ranks = table.ranges[r];
        if (static_cast<std::size_t>(ranks.first) != rank) continue;
        for_each_part(rest, [&](UnitSet group) {
          if (group == 0 || table.cost(group, r) == never) return;
          if (filling_ == Filling::placeholders && !table.is_inseparable(group)) return;
          const Times next = with_group(times, ranks, table.cost(group, r));
          if (!hope_.is_left(rest ^ group, next)) return;
          front(placed | group, rank + static_cast<std::size_t>(ranks.size), SlotHas::units)
              .add(next);
        });
      }
    }
  }

  Hope& hope_;
  Filling filling_;
  std::vector<Front> fronts_;
};

// No step is shorter than its rank time shared evenly, or than a unit where it is fastest.
Nanoseconds floor_of(const GroupTable& table, const std::vector<Nanoseconds>& areas) {
  Nanoseconds floor = areas.back() / static_cast<Nanoseconds>(table.num_ranks);
  for (std::size_t i = 0; i < table.num_units; ++i) {
    Nanoseconds fastest = never;
    for (std::size_t r = 0; r < table.ranges.size(); ++r) {
      fastest = std::min(fastest, table.cost(UnitSet{1} << i, r));
    }
    floor = std::max(floor, fastest);
  }
  return floor;
}

template <class Run>
std::optional<Nanoseconds> best_by_targets(const GroupTable& table, Nanoseconds limit, Run run) {
  ISOCHRON_ASSERT(table.num_ranks <= most_ranks);
  const std::vector<Nanoseconds> areas = least_areas(table);
  if (areas.back() == never) return std::nullopt;
  const Nanoseconds floor = floor_of(table, areas);
  for (Nanoseconds slack = floor / 128 + 1;; slack *= 2) {
    const Nanoseconds target = std::min(floor + slack, limit - 1);
    Hope hope{table, areas, target};
    run(hope);
    if (hope.best || target == limit - 1) return hope.best;
  }
}

}  // namespace

std::optional<Nanoseconds> best_free(const GroupTable& table, Nanoseconds limit) {
  return best_by_targets(table, limit, search_free);
}

std::optional<Nanoseconds> best_equal(const GroupTable& table, Filling filling, Nanoseconds limit) {
  return best_by_targets(table, limit, [&](Hope& hope) { EqualSearch(hope, filling).run(); });
}

}  // namespace isochron::oracle
