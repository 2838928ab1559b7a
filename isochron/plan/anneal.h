#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "isochron/plan/problem.h"
#include "isochron/plan/slots.h"

namespace isochron {

// What slots take in the mode at hand; none if they are not a plan there.
using SlotsTime = std::function<std::optional<Nanoseconds>(const DraftSlots& slots)>;

// For batches of few items: changes the slots at random (what runs together, where, in which order),
// keeps what is shorter and, less and less often, what is longer, and returns the best slots met.
// They keep the capacity, the sizes and the bundles; everything else is up to `time`. Never worse
// than `slots`. Ends at `bound` or after `num_trials` changes.
[[nodiscard]] DraftSlots anneal(const Problem& problem, DraftSlots slots, Nanoseconds bound,
                                std::int64_t num_trials, const SlotsTime& time);

}  // namespace isochron
