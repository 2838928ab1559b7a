#pragma once

#include <cstdint>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

// Slots in another order, where that is shorter or needs less memory. `work` is what an order
// search may do.

namespace isochron {

// All ranks in one order. `trial` is the plan of the problem; its slots become these.
[[nodiscard]] DraftSlots reordered_slots(const Problem& problem, StepPlan& trial, DraftSlots slots,
                                         std::int64_t work);

// Every cell in its own order, where groups of one size stand in all slots. The placeholders of a
// cell, one for each of its ranks, stay together.
[[nodiscard]] DraftSlots reordered_cells(const Problem& problem, const DraftSlots& slots,
                                         std::int64_t work);

}  // namespace isochron
