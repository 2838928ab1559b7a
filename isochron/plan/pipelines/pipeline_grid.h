#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/pipelines/cell_items.h"
#include "isochron/plan/pipelines/even_cells.h"
#include "isochron/plan/problem.h"

namespace isochron {

struct Grid {
  DraftSlots slots;      // empty bins are left out
  Nanoseconds time = 0;  // of simulate(), if it is full
  bool is_full = false;  // every rank has something in every slot
};

// For cells of one size, which every item fits. Spreads the items over the cells and those of a
// cell over its slots by `heights`. Then moves and exchanges items and reorders slots
// while that is not slower, until the time meets `bound` or `work` operations were played. None if
// some item found no room.
[[nodiscard]] std::optional<Grid> find_grid(const Problem& problem, const CellItems& cells,
                                            const GridShape& shape, std::span<const double> heights,
                                            Nanoseconds bound, std::int64_t work);

// Moves, exchanges and reorders in the same way from what is in the bins of a draft.
[[nodiscard]] Grid improved_grid(const Problem& problem, CellDraft draft, const GridShape& shape,
                                 Nanoseconds bound, std::int64_t work);

}  // namespace isochron
