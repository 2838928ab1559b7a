#pragma once

#include <memory>

#include "isochron/plan/problem.h"

namespace isochron {

// A question of a part of the ranks with the same part of the sequences, long and short ones alike:
// what numbers of slots and what sizes are good there are good for the whole. Of ranks that are not
// equally fast it has whole blocks. Null where the whole is small itself, its ranks do not divide,
// or all of them wait for slow ones.
[[nodiscard]] std::unique_ptr<Problem> sample_of(const Problem& problem);

}  // namespace isochron
