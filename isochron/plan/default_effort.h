#pragma once

#include <cstdint>

#include "isochron/plan/problem.h"

namespace isochron {

// The work of a search if nobody says how much: it grows with the batch, and where pipelines are
// planned it is worth no more than a small part of their step. Every bundle fits some size.
[[nodiscard]] std::int64_t default_effort(const Problem& problem);

}  // namespace isochron
