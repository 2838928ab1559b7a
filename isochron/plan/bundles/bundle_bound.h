#pragma once

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// No step in which ranks wait for the members of their groups only, and every bundle keeps its
// ranks, is shorter. Raises `low`, which is such a bound, to at most `high`, the time of a step. By
// what blocks of ranks can hold, which takes longest to find, only if that raises it above
// `useful`. Needs has_nested_bundles().
[[nodiscard]] Nanoseconds bundle_bound(const Problem& problem, Nanoseconds low, Nanoseconds high,
                                       Nanoseconds useful = 0);

}  // namespace isochron
