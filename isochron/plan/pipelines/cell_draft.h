#pragma once

#include <cstddef>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Groups of ranks, each of which runs all slots: the cells. Those of a line wait for each other in
// every slot. A line may have one cell over all of its ranks, which runs one slot; the others
// leave that one out.
struct CellDraft {
  struct Cell {
    RankRange ranks;
    std::size_t line = 0;  // not descending
  };
  struct Bin {
    std::vector<ItemId> items;
    bool is_closed = false;  // other cells of the line have these ranks in this slot
  };
  std::vector<Cell> cells;
  std::vector<Bin> bins;  // by cell, then slot
};

}  // namespace isochron
