#pragma once

#include <algorithm>
#include <cstdint>

#include "isochron/plan/problem.h"

namespace isochron {

// The work of a search if nobody says how much: it grows with the batch, and where pipelines are
// planned it is worth no more than a small part of their step. Every bundle fits some size.
[[nodiscard]] std::int64_t default_effort(const Problem& problem);

// Whether the bound of a step may be a time, of which planning it may take a part: less than a
// millisecond is counted in something else.
[[nodiscard]] inline bool is_time(Nanoseconds bound) { return bound >= 1'000'000; }

// What the time of a step counts for where planning it gets a part of that: nobody feels a
// millisecond, a hundredth of this.
[[nodiscard]] inline Nanoseconds time_to_plan(Nanoseconds bound) {
  constexpr Nanoseconds least = 100'000'000;
  return std::max(bound, least);
}

// Gives the purse of the problem its limit, once the bound of its step is known: most of a
// hundredth of it for all that is asked beside the first search, less where aligned groups had
// theirs, and enough for very few items. None if the effort is given.
void limit_purse(const Problem& problem, Nanoseconds bound);

// Whether searches for equally many micro-batches on every rank try all there is.
[[nodiscard]] bool has_few_items(const Problem& problem);

// What such a search takes about, in nanoseconds, on one thread.
[[nodiscard]] double time_of_equal_counts(const Problem& problem);

}  // namespace isochron
