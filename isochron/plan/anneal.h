#pragma once

#include <cstdint>
#include <functional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// What a step takes in the mode at hand, if every rank runs its groups in this order.
using DraftTime = std::function<Nanoseconds(const Draft& draft)>;

// Whether items are so few that annealing finds what searches, made for many, miss.
[[nodiscard]] bool is_annealed(const Problem& problem);

// For batches of few items: changes the slots at random (what runs together, where, in which
// order), keeps what is shorter and, less and less often, what is longer, and returns the best
// slots met. They keep the capacity, the sizes and the bundles; everything else is up to `time`.
// Never worse than `slots`. Ends at `bound`, or after `num_trials` changes and an eighth as many
// beside the best. At first a change that costs `heat` of the time is kept with even odds.
[[nodiscard]] DraftSlots anneal(const Problem& problem, const DraftSlots& slots, Nanoseconds bound,
                                double heat, std::int64_t num_trials, const DraftTime& time);

}  // namespace isochron
