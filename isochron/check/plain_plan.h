#pragma once

#include <optional>
#include <string>

#include "isochron/check/plan_view.h"

namespace isochron::check {

// A plan that is plain to see for the question of a document without an answer, in words: every
// sequence, or every prompt group that stays in a micro-batch, in a slot of its own; where
// placeholders are not wanted, on all ranks, or side by side with others on static groups. None if
// that is no plan, which says nothing about others.
[[nodiscard]] std::optional<std::string> find_plain_plan(const PlanView& view);

}  // namespace isochron::check
