#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Slots in which no rank idles, in a number that is a multiple of `multiple`, where bundles keep
// their ranks: the ranks are cut into cells, each of which runs whole bundles and has an item in
// every slot. Bundles that need more ranks may have their own cells, in slots of their own. Nothing
// if none are found.
[[nodiscard]] std::optional<DraftSlots> find_full_cells(const Problem& problem,
                                                        std::int32_t multiple);

}  // namespace isochron
