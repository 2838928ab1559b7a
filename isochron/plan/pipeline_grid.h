#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots.h"

namespace isochron {

// Groups of one size side by side over all ranks, the cells, each of which runs the same number of
// slots through its stages.
struct GridShape {
  std::int32_t size = 1;       // of a cell: divides the ranks, and every cell has a price
  std::int32_t num_slots = 1;  // a multiple of pipeline.group
  Tokens capacity = 0;         // of a rank; only micro-batches of one item may exceed it
};

struct Grid {
  DraftSlots slots;      // empty bins are left out
  Nanoseconds time = 0;  // of simulate(), if each bin holds something
};

// Spreads the items, all of which fit the size, over the cells and those of a cell over its slots
// by the parts of `profile`. Then moves and exchanges items and reorders slots while that is not
// slower, until the time meets `bound` or `work` operations were played. None if some item found no
// room.
[[nodiscard]] std::optional<Grid> find_grid(const Problem& problem, const GridShape& shape,
                                            std::span<const std::int64_t> profile,
                                            Nanoseconds bound, std::int64_t work);

}  // namespace isochron
