#pragma once

#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"

namespace isochron {

// No step of ranks that are pipelines of several stages is shorter, in the pass that the options
// name. `room` is that of the question. Every bundle fits some size; some rank works at least
// `work` in a training pass, beside the fixed cost of its slots.
[[nodiscard]] Nanoseconds pipeline_bound(const Problem& problem, const RankRoom& room,
                                         Nanoseconds work = 0);

// The same where all groups have this size, which every bundle fits, in a fraction of the time.
[[nodiscard]] Nanoseconds static_pipeline_bound(const Problem& problem, const RankRoom& room,
                                                std::int32_t size);

}  // namespace isochron
