#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "isochron/plan/pipelines/cell_builder.h"
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

struct CellQuestion {
  Tokens capacity = 0;    // of a rank; only micro-batches of one item hold more
  Nanoseconds bound = 0;  // no step is shorter
  // It looks no further than what it finds in about so many.
  double nanoseconds = std::numeric_limits<double>::infinity();
  std::optional<CellGuess> guess = {};  // cells have that number of slots
  CellCare care = CellCare::fine;
  RestRanks rest = RestRanks::idle;
};

// Cells of several sizes that are done early, where every item is a bundle. `room` and `heights`
// are those of the problem. None if no cells are found.
[[nodiscard]] std::optional<FoundCells> search_cells(const Problem& problem, const RankRoom& room,
                                                     SlotHeights& heights,
                                                     const CellQuestion& question);

}  // namespace isochron
