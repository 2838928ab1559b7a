#pragma once

#include <cstddef>
#include <vector>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A group of the smallest size that runs nothing in a slot.
struct IdleCell {
  std::size_t slot = 0;
  RankRange ranks;
};

// By slot, then by rank.
[[nodiscard]] std::vector<IdleCell> idle_cells(const Problem& problem,
                                               const std::vector<std::vector<DraftGroup>>& slots);

// Gives every idle cell an item, out of micro-batches that hold several, as long as there are any.
// For steps in which ranks wait for the members of their groups only: ranks that are done late get
// what costs them little, or nothing.
void fill_idle_cells(const Problem& problem, std::vector<std::vector<DraftGroup>>& slots);

}  // namespace isochron
