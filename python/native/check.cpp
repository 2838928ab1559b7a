#include "isochron/check/check.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "isochron/core/require.h"
#include "isochron/step/step_plan.h"
#include "python/native/answer.h"
#include "python/native/batch.h"
#include "python/native/bindings.h"

namespace isochron::python {

namespace {

std::string document_of(nb::handle result) {
  if (PyUnicode_Check(result.ptr())) return nb::cast<std::string>(result);
  if (nb::isinstance<StepPlan>(result)) return to_json(nb::cast<const StepPlan&>(result));
  if (nb::isinstance<BalanceAnswer>(result)) return to_json(nb::cast<const BalanceAnswer&>(result));
  require(nb::isinstance<PackAnswer>(result), "check",
          "result is {}, must be a StepPlan, a Balance, a Packing or the JSON of one",
          shown_value(result));
  return to_json(nb::cast<const PackAnswer&>(result));
}

std::optional<std::string> violation_of(nb::handle result, nb::handle lengths,
                                        nb::handle extra_cost_ns, nb::handle groups) {
  const std::string document = document_of(result);
  std::optional<Batch> expected;
  if (!lengths.is_none()) expected = batch_of(lengths, extra_cost_ns, groups, "check");
  const nb::gil_scoped_release release;
  return find_violation(document, expected ? &*expected : nullptr);
}

}  // namespace

void bind_check(nb::module_& module) {
  const std::string text = "def check(result: StepPlan | Balance | Packing | str, " +
                           std::string(lengths_parameter) + " | None = None, *, " +
                           std::string(batch_parameters) + ") -> str | None";
  module.def("check", &violation_of, nb::arg("result"), nb::arg("lengths") = nb::none(),
             nb::kw_only(), nb::arg("extra_cost_ns") = nb::none(), nb::arg("groups") = nb::none(),
             nb::sig(text.c_str()),
             "The first rule that a result breaks, in words; None if it is valid.\n\nShares no "
             "algorithm with the planner: costs, sums, times and bounds are worked out again. With "
             "lengths the result must also have been made from them. ValueError for a text that is "
             "no result.");
}

}  // namespace isochron::python
