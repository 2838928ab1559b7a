#pragma once

#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"

namespace isochron {

// No step of ranks that are pipelines of several stages is shorter, in the pass that the options
// name. `room` is that of the question. Every bundle fits some size.
[[nodiscard]] Nanoseconds pipeline_bound(const Problem& problem, const RankRoom& room);

// The same from what some rank works at least in a training pass, beside the fixed cost of its
// slots, in a fraction of the time.
[[nodiscard]] Nanoseconds pipeline_bound_of(const Problem& problem, const RankRoom& room,
                                            Nanoseconds work);

// The same where all groups have this size, which every bundle fits.
[[nodiscard]] Nanoseconds static_pipeline_bound(const Problem& problem, const RankRoom& room,
                                                std::int32_t size);

// The same from how few groups stand side by side, where the smallest leave ranks over and all
// ranks are alike, in a fraction of the time; else 0.
[[nodiscard]] Nanoseconds side_by_side_bound(const Problem& problem);

}  // namespace isochron
