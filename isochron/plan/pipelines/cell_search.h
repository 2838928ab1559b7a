#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/pipelines/slot_heights.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Where cells are looked for: those of a sample are near those of the whole.
struct CellGuess {
  std::int32_t num_slots = 1;  // a multiple of pipeline.group
  double time = 0;             // of the slowest line, as RankRoom counts it
};

struct FoundCells {
  CellDraft draft;
  CellGuess found;
};

// Coarse: of fewer numbers of slots, and their times less closely.
enum class CellCare { coarse, fine };

// Cells of several sizes that are done early, where ranks are equally fast and every item is a
// bundle. Only micro-batches of one item hold more than `capacity` tokens a rank; no step is
// shorter than `bound`; `room` and `heights` are those of the question. With a guess they have that
// number of slots. Looks no further than what it finds in about so many nanoseconds. None if no
// cells are found.
[[nodiscard]] std::optional<FoundCells> search_cells(const Problem& problem, const RankRoom& room,
                                                     SlotHeights& heights, Tokens capacity,
                                                     Nanoseconds bound, double nanoseconds,
                                                     const std::optional<CellGuess>& guess = {},
                                                     CellCare care = CellCare::fine);

}  // namespace isochron
