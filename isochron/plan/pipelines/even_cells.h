#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/pipelines/cell_items.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Every cell runs the same number of slots through its stages.
struct GridShape {
  std::int32_t num_slots = 1;  // a multiple of pipeline.group
  Tokens capacity = 0;         // of a rank; only micro-batches of one item may exceed it
  bool is_rough = false;       // of the ways to spread items over cells the likelier alone
};

// For cells of one size, which every item fits: spreads the items over the cells by what they cost,
// or with what a long one makes others wait, and those of a cell over its slots by `heights`. Every
// cell is a line. None if some item found no room.
[[nodiscard]] std::optional<CellDraft> find_even_cells(const Problem& problem,
                                                       const CellItems& cells,
                                                       const GridShape& shape,
                                                       std::span<const double> heights,
                                                       bool is_wait_counted);

}  // namespace isochron
