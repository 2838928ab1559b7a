#pragma once

#include "isochron/plan/problem.h"

namespace isochron {

// No step in which every bundle keeps its ranks, wherever groups of its size may stand, is shorter:
// by which bundles can share a rank. Raises `low`, which is such a bound, to at most `high`, the
// time of a step. Needs ranks that are equally fast; takes long for many bundles times sizes.
[[nodiscard]] Nanoseconds group_choice_bound(const Problem& problem, Nanoseconds low,
                                             Nanoseconds high);

}  // namespace isochron
