#pragma once

#include <optional>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Whether find_nested_step() is for this question: groups of any size, few items and ranks, no
// bundles of several items, no slow ranks.
[[nodiscard]] bool has_nested_step(const Problem& problem);

// The best step in which no two groups cross: one of them holds the other, or they share no rank.
// Nothing if none is shorter than `limit`. 3^n for each way to split each number of ranks in two.
[[nodiscard]] std::optional<Draft> find_nested_step(const Problem& problem, Nanoseconds limit);

}  // namespace isochron
