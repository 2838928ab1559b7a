#pragma once

#include <string_view>

#include "isochron/check/plan_view.h"

namespace isochron::check {

struct PlanBound {
  Nanoseconds step_ns = 0;
  std::string_view from;  // what it follows from, for messages
};

// No plan for the sequences of this one, under the same options, is faster than that. Allows for
// all rounding, so that it proves a faster plan wrong and never a right one. Needs a plan that
// keeps the rules of plan_places.h and plan_groups.h.
[[nodiscard]] PlanBound plan_bound(const PlanView& view);

}  // namespace isochron::check
