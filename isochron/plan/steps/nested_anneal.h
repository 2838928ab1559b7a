#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Whether anneal_nested() is for this question: groups nest, bundles are single items, and these
// are few for the ranks, so that each decides how well the groups beside it fit.
[[nodiscard]] bool has_few_nested_items(const Problem& problem);

// How many changes a step is worth: what takes a threehundredth of its time or less, and none where
// these are too few for what there is to change. Any number for an effort that was asked for.
[[nodiscard]] std::int64_t nested_changes_worth(const Problem& problem, Nanoseconds bound,
                                                std::int64_t effort);

// Moves items between the groups of a step at random, and exchanges them, until it ends at `bound`
// or after `num_trials` changes. Nothing if no step is found that ends before `limit`.
[[nodiscard]] std::optional<Draft> anneal_nested(const Problem& problem, Nanoseconds bound,
                                                 Nanoseconds limit, std::int64_t num_trials);

}  // namespace isochron
