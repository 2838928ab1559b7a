#include "isochron/report/report.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "isochron/report/beside_baselines.h"
#include "python/native/bindings.h"
#include "python/native/python_value.h"
#include "python/native/report.h"

namespace isochron::python {

namespace {

constexpr std::string_view where = "report";

// A plan alone stands beside what would be run instead.
std::string page_beside_baselines(const StepPlan& plan) {
  return report_html(beside_baselines({.name = "plan", .steps = {checked_step(plan)}}));
}

std::vector<StepPlan> plans_of(nb::handle value, const std::string& name) {
  if (nb::isinstance<StepPlan>(value)) return {nb::cast<const StepPlan&>(value)};
  std::vector<StepPlan> plans;
  require(nb::try_cast(value, plans), where, "\"{}\" is {}, must be a StepPlan or a list of them",
          name, shown_value(value));
  return plans;
}

std::string page_of(nb::handle plans) {
  if (nb::isinstance<StepPlan>(plans)) {
    const auto& plan = nb::cast<const StepPlan&>(plans);
    const nb::gil_scoped_release release;
    return page_beside_baselines(plan);
  }
  require(PyDict_Check(plans.ptr()), where, "plans is {}, must be a StepPlan or a dict of them",
          shown_value(plans));
  std::vector<std::pair<std::string, std::vector<StepPlan>>> named;
  for (const auto& [key, value] : nb::borrow<nb::dict>(plans)) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    named.emplace_back(name, plans_of(value, name));
  }
  require(!named.empty(), where, "plans is empty, must hold at least one");
  const nb::gil_scoped_release release;
  std::vector<ReportEntry> entries;
  for (auto& [name, list] : named) {
    ReportEntry& entry = entries.emplace_back();
    entry.name = name;
    for (StepPlan& plan : list) entry.steps.push_back(checked_step(std::move(plan)));
  }
  return report_html(entries);
}

// A text as the value of an attribute in double quotes.
std::string attribute_text(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string inline_report(const StepPlan& plan) {
  const nb::gil_scoped_release release;
  return "<iframe title=\"isochron report\" sandbox=\"allow-scripts\" "
         "style=\"width: 100%; height: 720px; border: 0\" srcdoc=\"" +
         attribute_text(page_beside_baselines(plan)) + "\"></iframe>";
}

void bind_report(nb::module_& module) {
  module.def(
      "report", &page_of, nb::arg("plans"),
      nb::sig("def report(plans: StepPlan | collections.abc.Mapping[str, StepPlan | "
              "collections.abc.Sequence[StepPlan]]) -> str"),
      "One HTML page that needs no other file and no network: summary, timeline, load, "
      "tokens, memory and padding.\n\nA plan alone stands beside naive packing and verl "
      "0.9.1 on the same lengths; a dict of plans, or of lists of them for successive steps, "
      "stands side by side, the first as \"before\".");
}

}  // namespace isochron::python
