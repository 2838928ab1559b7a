#pragma once

#include <optional>

#include "isochron/plan/draft.h"
#include "isochron/plan/problem.h"

namespace isochron {

// The shortest step that is found in which groups do not overlap: every bundle, or a few of them
// together, have ranks of their own, as many as they need to be in time. None if it takes at least
// `limit`. Needs groups of any size, ranks that are equally fast, and few bundles.
[[nodiscard]] std::optional<Draft> find_side_by_side(const Problem& problem, Nanoseconds limit);

}  // namespace isochron
