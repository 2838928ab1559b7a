#pragma once

#include <cstddef>
#include <string>

#include "isochron/step/step_plan.h"

namespace isochron {

// Whether the first units of a batch have a plan.
struct Outcome {
  enum class Kind {
    found,
    unfilled,   // none without placeholders; with fewer units there may be one
    too_few,    // none without placeholders, nor with fewer units
    impossible  // some unit can be run by no plan
  };
  Kind kind = Kind::found;
  bool is_proved = true;       // that there is none
  std::string reason;          // why there is none, in words; else empty
  std::size_t most_units = 0;  // of fewer that may have one
};

// Dealing in order is quick, and tells as much of what can be filled.
enum class Look { search, deal };

// Writes the plan of the first `num_kept` units into `plan`, which holds the question: the
// micro-batches, what stands alone, the padding rows that so many units need, prediction and bound.
// If none is found, what these are is open.
[[nodiscard]] Outcome plan_units(StepPlan& plan, std::size_t num_kept, Look look);

// Why there is no plan without placeholders.
[[nodiscard]] std::string unfilled_text(const StepPlan& plan, bool is_proved);

}  // namespace isochron
