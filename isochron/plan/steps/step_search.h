#pragma once

#include <cstdint>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A step in which ranks wait for the members of their groups only, and run as many micro-batches as
// they need. Every bundle fits some size. Ends at `bound`, or when `work` is used up. With
// `min_slots` every rank pays for that many micro-batches, which is what equal counts cost.
[[nodiscard]] Draft search_step(const Problem& problem, Nanoseconds bound, std::int64_t work,
                                std::int32_t min_slots = 0);

// The same from a step that is known: that one, if nothing shorter is found.
[[nodiscard]] Draft improve_step(const Problem& problem, Nanoseconds bound, std::int64_t work,
                                 Draft known);

}  // namespace isochron
