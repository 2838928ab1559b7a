#pragma once

#include "isochron/plan/problem.h"

namespace isochron {

// No step of ranks that are pipelines of several stages is shorter, in the pass that the options
// name. Every bundle fits some size; some rank works at least `work` in a training pass, beside the
// fixed cost of its slots.
[[nodiscard]] Nanoseconds pipeline_bound(const Problem& problem, Nanoseconds work = 0);

// The same where all groups have this size, which every bundle fits, in a fraction of the time.
[[nodiscard]] Nanoseconds static_pipeline_bound(const Problem& problem, std::int32_t size);

}  // namespace isochron
