#include "isochron/step/step_plan.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "isochron/core/json.h"
#include "python/native/answer.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/record.h"
#include "python/native/report.h"

namespace isochron::python {

namespace {

nb::typed<nb::list, int> rank_list(const RankRange& ranks) {
  nb::list list;
  for (std::int64_t i = 0; i < ranks.size; ++i) list.append(ranks.first + i);
  return list;
}

// A dict or a list of what JSON holds.
nb::object object_of(const Json& json) {
  return nb::module_::import_("json").attr("loads")(json.dump());
}

nb::object pipeline_of(const StepPlan& plan) {
  const PipelineShape& shape = plan.topology.pipeline;
  Json json;
  json["stages"] = shape.stages;
  json["virtual"] = shape.virtual_;
  json["group"] = shape.group;
  json["transfer_ns"] = shape.transfer_ns;
  json["shares"] = shape.shares;
  return object_of(json);
}

// The groups that a rank runs, in the order of running.
std::vector<ContextGroup> groups_of_rank(const StepPlan& plan, nb::handle rank) {
  const auto number =
      integer_argument<std::int64_t>(rank, "groups_of_rank", "rank", 0, plan.topology.ranks - 1);
  std::vector<ContextGroup> groups;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      const std::int64_t place = number - group.ranks.first;
      if (place >= 0 && place < group.ranks.size) groups.push_back(group);
    }
  }
  return groups;
}

void bind_group(nb::module_& module) {
  using Self = const ContextGroup&;
  nb::class_<ContextGroup> type(module, "ContextGroup",
                                "Ranks that run some sequences together, in one slot.");
  type.def_prop_ro(
      "ranks", [](Self self) { return rank_list(self.ranks); }, "Consecutive and ascending.");
  type.def_prop_ro(
      "sequences", [](Self self) { return id_list(self.sequences); },
      "Ascending; none: a placeholder of one rank.");
  type.def_prop_ro(
      "exchange",
      [](Self self) {
        return self.exchange ? std::optional(std::string(name_of(*self.exchange))) : std::nullopt;
      },
      nb::sig(("def exchange(self, /) -> " + literal_type<ContextKind>() + " | None").c_str()),
      "Given if the cost model offers several.");
  type.def("__repr__", [](Self self) {
    return fmt::format("ContextGroup(ranks={}, sequences={})",
                       nb::cast<std::string>(nb::repr(rank_list(self.ranks))),
                       nb::cast<std::string>(nb::repr(id_list(self.sequences))));
  });
  add_equality(type);
}

void add_figures(nb::class_<StepPlan>& type) {
  using Self = const StepPlan&;
  add_outcome(type, [](Self self) -> const StepPlan& { return self; });
  type.def_prop_ro(
      "ranks", [](Self self) { return self.topology.ranks; }, "Data x context parallel ranks.");
  type.def_prop_ro(
      "capacity", [](Self self) { return self.topology.capacity; },
      "Padded tokens of a micro-batch that one rank may hold.");
  type.def_prop_ro("pipeline", &pipeline_of,
                   nb::sig("def pipeline(self, /) -> dict[str, typing.Any]"),
                   "stages, virtual, group, transfer_ns and shares.");
  type.def_prop_ro(
      "rank_speed", [](Self self) { return self.topology.rank_speed; },
      "1: as fast as the cost model says; empty: all 1.");
  type.def_prop_ro(
      "options", [](Self self) { return object_of(options_to_json(self.options)); },
      nb::sig("def options(self, /) -> dict[str, typing.Any]"),
      "What was asked, with every default filled in, under the keys of the document.");
  add_attributes(
      type, Attribute{"cost", &StepPlan::cost, "The cost model."},
      Attribute{"batch", &StepPlan::batch, "The sequences that were planned."},
      Attribute{"first_sequence", &StepPlan::first_sequence,
                "Of the batch, in the data set it was cut from."},
      Attribute{"padding_rows", &StepPlan::padding_rows,
                "Synthetic sequences of 2 tokens, with the ids after the last."},
      Attribute{"predicted_step_ns", &StepPlan::predicted_step_ns, "When the last rank is done."},
      Attribute{"lower_bound_ns", &StepPlan::lower_bound_ns,
                "No plan under the same options takes less."},
      Attribute{"imbalance", &StepPlan::imbalance, "Busiest rank over mean."});
  type.def_prop_ro(
      "lengths", [](Self self) { return view_of(self.batch.lengths); },
      nb::rv_policy::reference_internal, "Tokens of each sequence, without padding rows.");
  type.def_prop_ro(
      "peak_activation_bytes", [](Self self) { return view_of(self.peak_activation_bytes); },
      nb::rv_policy::reference_internal, "Of each rank, on its fullest stage.");
  type.def_ro(
      "microbatches", &StepPlan::microbatches,
      "The slots in the order of running; of each the groups that run in it, by rank. A list made "
      "anew each time.");
  type.def_prop_ro(
      "oversized", [](Self self) { return id_list(self.oversized); },
      "Over the capacity, each alone.");
  type.def_prop_ro(
      "dropped", [](Self self) { return id_list(self.dropped); }, "In no group.");
}

}  // namespace

void bind_step_plan(nb::module_& module) {
  bind_group(module);
  using Self = const StepPlan&;
  nb::class_<StepPlan> type(
      module, "StepPlan",
      "Who runs what, with whom, in which order: a step as data, with all that was asked, so that "
      "it can be checked, simulated, executed and drawn alone.");
  add_figures(type);
  type.def("groups_of_rank", &groups_of_rank, nb::arg("rank"),
           nb::sig("def groups_of_rank(self, rank: int) -> list[ContextGroup]"),
           "The groups that a rank runs, in the order of running.");
  type.def_prop_ro(
      "hash", [](Self self) { return fmt::format("{:016x}", plan_hash(self)); },
      "16 hex digits over all the rest: equal on every machine where the plan is.");
  add_document(type);
  type.def_static(
      "from_json", [](std::string_view json_text) { return step_plan_from_json(json_text); },
      nb::arg("json_text"),
      "Reads what to_json() and the command line write. Checks the form; what a plan "
      "means is checked by check(). ValueError for anything else.");
  type.def("__getstate__", [](Self self) { return to_json(self); });
  type.def("__setstate__", [](StepPlan& self, const std::string& state) {
    new (&self) StepPlan(step_plan_from_json(state));
  });
  type.def("_repr_html_", &inline_report, "The report as a frame that needs nothing else.");
  type.def(
      "show", [](nb::handle self) { nb::module_::import_("isochron.notebook").attr("show")(self); },
      nb::sig("def show(self) -> None"),
      "Shows the report: inline in a notebook, elsewhere as a page whose path is printed.");
  type.def("__repr__", [](Self self) {
    return fmt::format(
        "StepPlan(status='{}', ranks={}, sequences={}, slots={}, predicted_step_ns={}, "
        "lower_bound_ns={})",
        name_of(self.status), self.topology.ranks, self.batch.lengths.size(),
        self.microbatches.size(), self.predicted_step_ns, self.lower_bound_ns);
  });
  add_equality(type);
  module.def("plan_hash", &plan_hash, nb::arg("plan"),
             "FNV-1a, 64 bits, over the bytes of the document.");
}

}  // namespace isochron::python
