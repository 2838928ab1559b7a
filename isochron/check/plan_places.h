#pragma once

#include "isochron/check/plan_view.h"

// Who stands where: rows that were added, slots and their ranks, every sequence once.

namespace isochron::check {

// As many padding rows as `pad` and `pad_multiple` ask for.
[[nodiscard]] Violation find_padding_violation(const PlanView& view);

// Slots that hold something, whose groups ascend and share no rank; where counts are equal every
// rank is in each of them; with virtual stages their number is a multiple of pipeline.group.
[[nodiscard]] Violation find_slot_violation(const PlanView& view);

// Every sequence and every padding row in one group or dropped. Later rules rely on it.
[[nodiscard]] Violation find_place_violation(const PlanView& view);

}  // namespace isochron::check
