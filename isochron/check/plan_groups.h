#pragma once

#include "isochron/check/plan_view.h"

// What a group of ranks may be and hold. All rely on the rules of plan_places.h.

namespace isochron::check {

// Sizes and first ranks as the context allows. A placeholder is one rank.
[[nodiscard]] Violation find_size_violation(const PlanView& view);

// A way to run every group; where the cost model offers several the group names the cheapest.
[[nodiscard]] Violation find_exchange_violation(const PlanView& view);

// Padded tokens within the capacity; what is over it is listed, alone, and could not be helped.
[[nodiscard]] Violation find_capacity_violation(const PlanView& view);

[[nodiscard]] Violation find_max_sequences_violation(const PlanView& view);

// Prompt groups on one set of ranks, or in one micro-batch, as asked.
[[nodiscard]] Violation find_kept_group_violation(const PlanView& view);

}  // namespace isochron::check
