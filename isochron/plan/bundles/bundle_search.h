#pragma once

#include <cstdint>

#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Moves whole bundles between blocks of ranks until the last rank is done at `bound` or after
// `num_trials` changes. Never worse than `start`, a step in which every bundle keeps its ranks.
// Needs has_nested_bundles().
[[nodiscard]] Draft search_bundles(const Problem& problem, const Draft& start, Nanoseconds bound,
                                   std::int64_t num_trials);

}  // namespace isochron
