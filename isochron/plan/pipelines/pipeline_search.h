#pragma once

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Whether ranks wait for so many others that slots of all of them are better than cells of their
// own. Where some are slow, the search then tries the slots of equally fast ones.
[[nodiscard]] bool do_many_wait(const Problem& problem);

// A step of ranks that are pipelines of several stages, by simulate() never slower than
// naive_plan() where its groups are admitted, nor, unless there is `start`, than a static size that
// the options admit; but for what a rough look excludes, and what may save less than a few times
// what asking takes (step_worth.h).
// `plan` holds the question, `room` is that of its pipelines; no step is shorter than `bound`.
// Keeps options.max_activation_bytes if it finds slots that do. `start` is never better than the
// answer: what aligned groups get, where groups have any size; else empty.
[[nodiscard]] DraftSlots search_pipeline(const Problem& problem, const StepPlan& plan,
                                         const RankRoom& room, Nanoseconds bound, std::int64_t work,
                                         DraftSlots start = {});

}  // namespace isochron
