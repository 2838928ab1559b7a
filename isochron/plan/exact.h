#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"
#include "isochron/plan/slots/slot_search.h"

// For few items: the best of all plans, by dynamic programming over subsets. Nothing where that
// does not apply: many items, slow ranks.

namespace isochron {

// The best step in which ranks wait for the members of their groups only, with aligned groups that
// nest and cost the same everywhere. Exponential in the bundles: 3^n for each size. Bundles of
// several items: the best if as many micro-batches as their tokens fill hold them, and else a bound
// beside a step.
struct ExactStep {
  Draft draft;
  Nanoseconds bound = 0;  // no step is shorter
};
[[nodiscard]] std::optional<ExactStep> find_exact_step(const Problem& problem);

// The best step in which all ranks wait after every slot, of those that use all ranks of each, or
// of all. 3^n for each pair of a size and a number of ranks, or a place.
enum class SlotRanks : std::uint8_t { some, all };
[[nodiscard]] std::optional<SlotDraft> find_exact_slots(const Problem& problem,
                                                        SlotRanks used = SlotRanks::some);

}  // namespace isochron
