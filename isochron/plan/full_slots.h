#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Slots of the same items in which no rank idles, in a number that is a multiple of `multiple`: the
// earliest by `time` of what is found. Nothing if that is nothing. Slots that are full stay as they
// are.
[[nodiscard]] std::optional<DraftSlots> find_full_slots(
    const Problem& problem, std::int32_t multiple, DraftSlots slots,
    const std::function<Nanoseconds(const DraftSlots& slots)>& time);

// The same by the time that is predicted of the plan with these slots. Of the plan only the
// question is read.
[[nodiscard]] std::optional<DraftSlots> find_full_slots(const StepPlan& plan,
                                                        const Problem& problem, DraftSlots slots);

}  // namespace isochron
