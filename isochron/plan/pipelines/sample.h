#pragma once

#include <memory>

#include "isochron/plan/problem.h"

namespace isochron {

// A question of a part of the ranks with the same part of the sequences, long and short ones alike:
// what numbers of slots and what sizes are good there are good for the whole. Null where the whole
// is small itself, or its ranks do not divide, or are not equally fast.
[[nodiscard]] std::unique_ptr<Problem> sample_of(const Problem& problem);

}  // namespace isochron
