#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "isochron/plan/bundles/cell_partition.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// The items of one cell in `count` micro-batches of even cost. Nothing if none is found.
[[nodiscard]] std::optional<std::vector<DraftGroup>> even_groups(const Problem& problem,
                                                                 RankRange cell,
                                                                 const std::vector<ItemId>& items,
                                                                 std::int32_t count);

// Micro-batches of cells in slots for which all cells wait. Every item fits its cell, and no rank
// is slow.
[[nodiscard]] DraftSlots lock_step(const Problem& problem, const std::vector<BundleCell>& cells);

}  // namespace isochron
