#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Some slots in which no rank idles, in a number that is a multiple of `multiple`, by trying one
// place after the other, as many as the work allows: for few items, where everything else has found
// none. Whatever they take; nothing if none are found, which proves nothing.
[[nodiscard]] std::optional<DraftSlots> try_full_slots(const Problem& problem,
                                                       std::int32_t multiple, std::int64_t work);

}  // namespace isochron
