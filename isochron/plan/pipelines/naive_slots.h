#pragma once

#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The slots of naive_plan(), what a loader without a planner would do, where that is a plan of the
// question, which `plan` states; `room` is that of its pipelines. No step is shorter than `bound`.
// None if they take at least `limit`, most of which shows before they are made; where activations
// are limited, their time does not tell.
[[nodiscard]] std::optional<DraftSlots> find_naive_slots(const Problem& problem,
                                                         const StepPlan& plan, const RankRoom& room,
                                                         Nanoseconds bound, Nanoseconds limit);

}  // namespace isochron
