#include <nanobind/stl/string_view.h>

#include "isochron/cost/analytic.h"
#include "isochron/cost/cost_model.h"
#include "python/native/arrays.h"
#include "python/native/batch.h"
#include "python/native/bindings.h"
#include "python/native/question.h"
#include "python/native/record.h"

namespace isochron::python {

namespace {

void bind_context(nb::module_& module) {
  nb::class_<ContextLink> link(module, "ContextLink",
                               "What connects the ranks of one block of the machine.");
  add_record(link, "ContextLink",
             Attribute{"max_ranks", &ContextLink::max_ranks, "Ranks of a block."},
             Attribute{"gb_per_s", &ContextLink::gb_per_s, "1 GB/s is 1 byte/ns."},
             Attribute{"latency_us", &ContextLink::latency_us,
                       "Per micro-batch: all layers, forward and backward."});
  nb::class_<ContextCost> context(module, "ContextCost",
                                  "One way to exchange keys and values, and its price.");
  add_record(context, "ContextCost",
             Attribute{"kind", &ContextCost::kind, "How ranks see each other's keys and values."},
             Attribute{"bytes_per_token", &ContextCost::bytes_per_token,
                       "Moved per token: forward and backward, all layers."},
             Attribute{"divides", &ContextCost::divides,
                       "all_to_all: the group size divides this; 0: any size."},
             Attribute{"links", &ContextCost::links, "Ascending by max_ranks."},
             Attribute{"overlap", &ContextCost::overlap,
                       "Share of the traffic that is hidden behind compute."});
}

void bind_cost_model(nb::module_& module) {
  nb::class_<CostModel> type(
      module, "CostModel",
      "What sequences cost, in nanoseconds on one rank, forward and backward through all layers.");
  add_record(type, "CostModel", Attribute{"name", &CostModel::name, "What the model is called."},
             Attribute{"quadratic_ns", &CostModel::quadratic_ns, "Per token squared."},
             Attribute{"linear_ns", &CostModel::linear_ns, "Per token."},
             Attribute{"microbatch_ns", &CostModel::microbatch_ns, "Fixed, per micro-batch."},
             Attribute{"forward_share", &CostModel::forward_share,
                       "Of any cost, for pipelines and forward-only passes."},
             Attribute{"context", &CostModel::context,
                       "Ways to exchange keys and values; a group uses the cheapest that it may."},
             Attribute{"activation_bytes_per_token", &CostModel::activation_bytes_per_token,
                       "Kept for the backward, on one rank."});
  type.def(
      "to_json", [](const CostModel& self) { return to_json(self); },
      "JSON with the names of the fields.");
  type.def_static(
      "from_json", &cost_model_from_json, nb::arg("json_text"),
      "Reads what to_json() writes; fields may be missing. ValueError for anything else.");
  type.def("__getstate__", [](const CostModel& self) { return to_json(self); });
  type.def("__setstate__", [](CostModel& self, const std::string& state) {
    new (&self) CostModel(cost_model_from_json(state));
  });
}

}  // namespace

void bind_cost(nb::module_& module) {
  bind_context(module);
  bind_cost_model(module);
  module.def("cost_preset", &cost_preset, nb::arg("name"),
             "A model by name, in any case: verl, or MODEL_HARDWARE as in \"qwen3-8b_h100\".");
  module.def("cost_names", &cost_names, "The names of all presets.");

  const std::string costs_signature =
      "def sequence_costs(cost: CostModel | str, " + std::string(lengths_parameter) + ", *, " +
      std::string(batch_parameters) + ") -> numpy.typing.NDArray[numpy.int64]";
  module.def(
      "sequence_costs",
      [](nb::handle cost, nb::handle lengths, nb::handle extra_cost_ns, nb::handle groups) {
        return owned_array(
            sequence_costs(cost_of(cost, "verl", "sequence_costs"),
                           batch_of(lengths, extra_cost_ns, groups, "sequence_costs")));
      },
      nb::arg("cost"), nb::arg("lengths"), nb::kw_only(), nb::arg("extra_cost_ns") = nb::none(),
      nb::arg("groups") = nb::none(), nb::sig(costs_signature.c_str()),
      "What each sequence costs on one rank: quadratic_ns * s * s + linear_ns * s + its extra "
      "cost.");

  const std::string analytic_signature =
      "def analytic_cost(shape: ModelShape, hardware: Hardware, *, " +
      option_parameters<AnalyticOptions>() + ") -> CostModel";
  module.def(
      "analytic_cost",
      [](const ModelShape& shape, const Hardware& hardware, const nb::kwargs& options) {
        return analytic_cost(shape, hardware,
                             options_of<AnalyticOptions>(options, "analytic_cost"));
      },
      nb::arg("shape"), nb::arg("hardware"), nb::arg("options"),
      nb::sig(analytic_signature.c_str()),
      ("A cost model from formulas: the FLOPs of the shape at half of the peak, 5 ms a "
       "micro-batch, both exchanges over the links of the hardware." +
       option_lines<AnalyticOptions>())
          .c_str());
}

}  // namespace isochron::python
