#pragma once

#include <cstddef>
#include <vector>

#include "isochron/core/ids.h"
#include "isochron/core/sequences.h"

// What the oracles share: every way to divide a few things into sets. Nothing here comes from the
// planner but the types of the question.

namespace isochron::oracle {

namespace detail {

template <class Visit>
void place_next(std::size_t place, std::size_t num_sets, std::size_t max_sets,
                std::vector<std::size_t>& set_of, Visit& visit) {
  if (place == set_of.size()) {
    visit(set_of, num_sets);
    return;
  }
  for (std::size_t set = 0; set <= num_sets && set < max_sets; ++set) {
    set_of[place] = set;
    place_next(place + 1, set == num_sets ? num_sets + 1 : num_sets, max_sets, set_of, visit);
  }
}

}  // namespace detail

// Calls visit(set_of, num_sets) for every division of `count` things into at most `max_sets` sets,
// none of them empty. Sets are numbered by first occurrence, so that each division comes once.
template <class Visit>
void for_each_partition(std::size_t count, std::size_t max_sets, Visit visit) {
  std::vector<std::size_t> set_of(count);
  detail::place_next(0, 0, max_sets, set_of, visit);
}

// Sequences that stay together.
struct Unit {
  std::vector<SequenceId> sequences;
  Tokens tokens = 0;
  Nanoseconds cost = 0;
};

enum class Move { sequences, groups };  // what moves as a whole

// The sequences first to last - 1, or their groups by first occurrence.
inline std::vector<Unit> units_of(const Sequences& input, Move move, std::size_t first,
                                  std::size_t last) {
  std::vector<Unit> units;
  for (std::size_t i = first; i < last; ++i) {
    Unit* home = nullptr;
    for (Unit& unit : units) {
      if (move == Move::groups && input.groups[unit.sequences[0].index()] == input.groups[i]) {
        home = &unit;
      }
    }
    if (home == nullptr) home = &units.emplace_back();
    home->sequences.emplace_back(static_cast<std::int32_t>(i));
    if (!input.lengths.empty()) home->tokens += input.lengths[i];
    home->cost += input.costs[i];
  }
  return units;
}

}  // namespace isochron::oracle
