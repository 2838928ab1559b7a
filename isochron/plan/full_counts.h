#pragma once

#include "isochron/plan/problem.h"

namespace isochron {

// Whether counting proves that some rank idles in some slot, whatever the plan: no number of slots
// that pipeline.group divides has, in all of them, as many groups as make up all ranks, as there
// are items for, and as capacity and max_sequences ask for. Where it proves nothing such slots may
// still not exist.
[[nodiscard]] bool are_full_slots_excluded(const Problem& problem);

}  // namespace isochron
