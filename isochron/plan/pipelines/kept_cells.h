#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/bundles/cell_partition.h"
#include "isochron/plan/pipelines/cell_draft.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"

namespace isochron {

// The slots of cells that run whole bundles: every item in the slot that it fills best under the
// share that `heights` give the slot of what its cell takes. Only micro-batches of one item hold
// more than `capacity` tokens a rank. Every cell is a line. None if some item finds no room.
[[nodiscard]] std::optional<CellDraft> fill_kept_cells(const Problem& problem,
                                                       const std::vector<BundleCell>& cells,
                                                       std::span<const double> heights,
                                                       Tokens capacity);

// Numbers of slots from what the tokens of each cell need to as many as its items fill.
[[nodiscard]] SlotRange slots_of_cells(const Problem& problem, const std::vector<BundleCell>& cells,
                                       Tokens capacity);

// Slots that all tokens, and sequences where these are limited, fill at least on all ranks.
[[nodiscard]] std::int32_t fewest_slots(const Problem& problem, Tokens capacity);

// Whether about as many may end within `time`, as a RankRoom counts it: few make all stages wait.
[[nodiscard]] bool may_have_few_slots(const Problem& problem, Tokens capacity, const RankRoom& room,
                                      double time);

// Whether no order of so many slots of such cells, all of them used, ends within that time.
[[nodiscard]] bool exceed(const Problem& problem, const std::vector<BundleCell>& cells,
                          const RankRoom& room, double time, std::int32_t num_slots);

}  // namespace isochron
