#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "isochron/plan/problem.h"
#include "isochron/step/step_plan.h"

// What the policies of a plan leave to its search.

namespace isochron {

// Sequences, or prompt groups where they are kept together: what stays or is dropped as a whole.
[[nodiscard]] std::size_t num_units(const StepPlan& plan);
[[nodiscard]] std::size_t unit_of(const StepPlan& plan, std::size_t sequence);

// Rows of the batch that the first `num_kept` units have.
[[nodiscard]] std::int64_t num_rows_of(const StepPlan& plan, std::size_t num_kept);

// Whether what runs has to divide by options.pad_multiple.
[[nodiscard]] bool must_divide(const PlanOptions& options);

// Items and bundles of the first `num_kept` units and all padding rows.
[[nodiscard]] Work work_of(const StepPlan& plan, std::size_t num_kept);

// What an item is called in a reason.
[[nodiscard]] std::string item_text(const StepPlan& plan, std::span<const SequenceId> item);

// Marks what fits no group, or says why there is no plan.
[[nodiscard]] std::optional<std::string> apply_oversize(const StepPlan& plan, Problem& problem);

// Names in the plan what stands alone.
void set_oversized(const Problem& problem, StepPlan& plan);

}  // namespace isochron
