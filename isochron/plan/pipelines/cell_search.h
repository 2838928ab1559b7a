#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

struct FoundCells {
  CellDraft draft;
  std::int32_t num_slots = 1;  // a multiple of pipeline.group
};

// Cells of several sizes that are done early, where ranks are equally fast and every item is a
// bundle. Only micro-batches of one item hold more than `capacity` tokens a rank; no step is
// shorter than `bound`. None if no cells are found.
[[nodiscard]] std::optional<FoundCells> search_cells(const Problem& problem, Tokens capacity,
                                                     Nanoseconds bound);

}  // namespace isochron
