#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// Slots with stages that keep max_activation_bytes where it is tight: few sequences in a
// micro-batch, on wide groups, with ranks that sit out slots, in an order that keeps long ones
// apart. The fastest of those found, every rank in one group of every slot; none if no trial keeps
// the limit. `work` is the number of operations that may be looked at.
[[nodiscard]] std::optional<DraftSlots> find_thin_slots(const Problem& problem, std::int64_t work);

}  // namespace isochron
