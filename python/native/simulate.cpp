#include "isochron/simulate/simulate.h"

#include <nanobind/stl/string.h>

#include <string>

#include "isochron/check/check.h"
#include "isochron/core/require.h"
#include "isochron/report/trace.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/question.h"

namespace isochron::python {

namespace {

// A timeline, and the plan that it is of. The spans as columns, for numpy.
struct PlayedPlan {
  StepPlan plan;
  Timeline timeline;
  std::vector<std::int32_t> rank = {};
  std::vector<std::int32_t> stage = {};
  std::vector<std::int32_t> slot = {};
  std::vector<std::int32_t> chunk = {};
  std::vector<std::int32_t> group = {};
  std::vector<std::uint8_t> is_backward = {};  // 0 or 1: a vector of bool has no array
  std::vector<Nanoseconds> begin_ns = {};
  std::vector<Nanoseconds> end_ns = {};
};

void add_columns(PlayedPlan& played) {
  for (const TimelineSpan& span : played.timeline.spans) {
    played.rank.push_back(span.rank);
    played.stage.push_back(span.stage);
    played.slot.push_back(span.operation.slot);
    played.chunk.push_back(span.operation.chunk);
    played.group.push_back(span.group);
    played.is_backward.push_back(span.operation.direction == Direction::backward ? 1 : 0);
    played.begin_ns.push_back(span.begin_ns);
    played.end_ns.push_back(span.end_ns);
  }
}

PlayedPlan play(const StepPlan& plan, nb::handle cost) {
  PlayedPlan played{.plan = plan, .timeline = {}};
  if (!cost.is_none()) {
    played.plan.cost = cost_of(cost, {}, "simulate");
    for (Slot& slot : played.plan.microbatches) {
      for (ContextGroup& group : slot) group.exchange.reset();  // it was the cheapest of the other
    }
  }
  const nb::gil_scoped_release release;
  const auto violation = find_violation(to_json(plan));
  require(!violation, "simulate", "the plan is invalid: {}", violation.value_or(""));
  require(!plan.microbatches.empty(), "simulate", "there is no plan: {}: {}", name_of(plan.status),
          plan.reason);
  played.timeline = simulate(played.plan);
  add_columns(played);
  return played;
}

template <class T>
void add_column(nb::class_<PlayedPlan>& type, const char* name, std::vector<T> PlayedPlan::*column,
                const char* help) {
  type.def_prop_ro(
      name, [column](const PlayedPlan& self) { return view_of(self.*column); },
      nb::rv_policy::reference_internal, help);
}

}  // namespace

void bind_simulate(nb::module_& module) {
  using Self = const PlayedPlan&;
  nb::class_<PlayedPlan> type(
      module, "Timeline",
      "What a plan does, second by second. The arrays from rank to end_ns have one entry for each "
      "operation, ordered by rank, stage and begin.");
  type.def_prop_ro(
      "is_backward",
      [](Self self) {
        static_assert(sizeof(bool) == sizeof(std::uint8_t));
        return View<bool>(reinterpret_cast<const bool*>(self.is_backward.data()),
                          {self.is_backward.size()});
      },
      nb::rv_policy::reference_internal, "True for a backward, False for a forward.");
  type.def_prop_ro(
      "step_ns", [](Self self) { return self.timeline.step_ns; }, "End of the last operation.");
  type.def_prop_ro(
      "busy_ns", [](Self self) { return view_of(self.timeline.busy_ns); },
      nb::rv_policy::reference_internal, "Of each rank and stage, at rank * stages + stage.");
  type.def_prop_ro(
      "peak_activation_bytes",
      [](Self self) { return view_of(self.timeline.peak_activation_bytes); },
      nb::rv_policy::reference_internal, "Of each rank, on its fullest stage.");
  add_column(type, "rank", &PlayedPlan::rank, "The rank of each operation.");
  add_column(type, "stage", &PlayedPlan::stage, "Its stage.");
  add_column(type, "slot", &PlayedPlan::slot, "The slot that it runs.");
  add_column(type, "chunk", &PlayedPlan::chunk, "Of layers, 0 to stages * virtual - 1.");
  add_column(type, "group", &PlayedPlan::group, "The group, as a position in its slot.");
  add_column(type, "begin_ns", &PlayedPlan::begin_ns, "When it begins.");
  add_column(type, "end_ns", &PlayedPlan::end_ns, "When it ends.");
  type.def("__len__", [](Self self) { return self.timeline.spans.size(); });
  type.def(
      "trace_json", [](Self self) { return trace_json(self.plan, self.timeline); },
      "The timeline in the trace format of Chrome and Perfetto.");
  type.def("__repr__", [](Self self) {
    return fmt::format("Timeline(step_ns={}, operations={})", self.timeline.step_ns,
                       self.timeline.spans.size());
  });
  module.def(
      "simulate", &play, nb::arg("plan"), nb::arg("cost") = nb::none(),
      nb::sig("def simulate(plan: StepPlan, cost: CostModel | str | None = None) -> Timeline"),
      "Plays a plan, with its own costs or others. ValueError for a plan that check() rejects "
      "or that has no micro-batches.");
}

}  // namespace isochron::python
