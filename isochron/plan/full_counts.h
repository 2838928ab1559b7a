#pragma once

#include "isochron/plan/problem.h"

namespace isochron {

// Whether counting proves that some rank idles in some slot, whatever the plan: no number of slots
// that pipeline.group divides has, in all of them, as many groups as make up all ranks, as there
// are items for, and as capacity and max_sequences ask for. Where it proves nothing such slots may
// still not exist.
[[nodiscard]] bool are_full_slots_excluded(const Problem& problem);

// The most first bundles, fewer than all, whose number leaves it open whether slots of no others
// are full; 0 if no number does. All numbers between are excluded.
[[nodiscard]] BundleId most_bundles_of_full_slots(const Problem& problem);

}  // namespace isochron
