#pragma once

#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/pipelines/rank_room.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Whether bundles that are dealt in order to groups of the smallest static size are known to take
// longer than that; `room` is that of the pipelines of the question.
[[nodiscard]] bool is_dealt_late(const Problem& problem, const RankRoom& room, Nanoseconds limit);

// The slots of naive_plan(), what a loader without a planner would do, where that is a plan of the
// question, which `plan` states. No step is shorter than `bound`. None if they take at least
// `limit`; where activations are limited, their time does not tell.
[[nodiscard]] std::optional<DraftSlots> find_naive_slots(const Problem& problem,
                                                         const StepPlan& plan, Nanoseconds bound,
                                                         Nanoseconds limit);

}  // namespace isochron
