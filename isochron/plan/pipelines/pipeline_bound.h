#pragma once

#include "isochron/plan/problem.h"

namespace isochron {

// No step of ranks that are pipelines of several stages is shorter, in the pass that the options
// name. Every bundle fits some size.
[[nodiscard]] Nanoseconds pipeline_bound(const Problem& problem);

// The same where all groups have this size, which every bundle fits.
[[nodiscard]] Nanoseconds pipeline_bound(const Problem& problem, std::int32_t size);

}  // namespace isochron
