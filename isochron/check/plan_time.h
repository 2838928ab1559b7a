#pragma once

#include <cstdint>
#include <vector>

#include "isochron/check/plan_view.h"

namespace isochron::check {

// What follows from running a plan.
struct PlanTimes {
  Nanoseconds step_ns = 0;
  double imbalance = 1;                             // busiest rank over mean
  std::vector<std::int64_t> peak_activation_bytes;  // of each rank, on its fullest stage
};

// Runs a plan that keeps the rules of plan_places.h and plan_groups.h. Rejects one that takes
// longer than 2^62 ns, holds more than 2^62 bytes, or has more than 2^28 operations of single
// ranks. O(slots * ranks * chunks).
[[nodiscard]] PlanTimes plan_times(const PlanView& view);

// The last of these alone, of slots whose ranks may be idle.
[[nodiscard]] std::vector<std::int64_t> peak_activation_bytes(const PlanView& view);

}  // namespace isochron::check
