#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

#include "isochron/core/batch.h"
#include "isochron/core/sequences.h"
#include "isochron/cost/cost_model.h"

namespace isochron::python {

namespace nb = nanobind;

// A CostModel, or the name of a preset; None: `default_name`.
[[nodiscard]] CostModel cost_of(nb::handle cost, std::string_view default_name,
                                std::string_view where);

// What balance(), pack() and schedule_ranks() are asked: sequences and what they cost. Kept with
// the answer, so that it can be written down and checked.
struct Question {
  Batch batch;
  CostModel cost;
  std::vector<Nanoseconds> costs;  // of each sequence
  bool has_lengths = true;

  [[nodiscard]] Sequences sequences() const {
    return {.lengths = batch.lengths, .costs = costs, .groups = batch.groups};
  }
};

// Costs are those of the model (`verl` if None), or `costs` themselves: then the model is one of
// zeros, and they stand as extra costs. Lengths may be None where there are costs. Throws
// std::invalid_argument for what batch_of() and sequence_costs() reject, and both costs and a model
// or extra costs.
[[nodiscard]] Question question_of(nb::handle lengths, nb::handle costs, nb::handle extra_cost_ns,
                                   nb::handle groups, nb::handle cost, std::string_view where);

// Throws std::invalid_argument unless the question has lengths, without which nothing can be
// written down.
void require_lengths(const Question& question, std::string_view where);

// The parameters of the above in a signature, and their lines in a docstring.
inline constexpr std::string_view question_parameters =
    "costs: isochron.arrays.IntegerArray | None = None, "
    "extra_cost_ns: isochron.arrays.IntegerArray | None = None, "
    "groups: collections.abc.Sequence[int] | collections.abc.Sequence[str] | "
    "isochron.arrays.IntegerArray | None = None, "
    "cost: CostModel | str | None = None";
inline constexpr std::string_view question_lines =
    "\n    costs: of each sequence, instead of a cost model"
    "\n    cost: a CostModel or the name of a preset; verl's workload if None";

}  // namespace isochron::python
