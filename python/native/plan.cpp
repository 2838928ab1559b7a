#include "isochron/plan/plan.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "isochron/plan/baselines.h"
#include "python/native/batch.h"
#include "python/native/bindings.h"
#include "python/native/options.h"
#include "python/native/question.h"

namespace isochron::python {

namespace {

constexpr std::string_view default_cost = "qwen3-8b_h100";
constexpr IntegerRange depth = {1, 4096};  // of a pipeline

std::vector<double> numbers_of(nb::handle values, std::string_view where, std::string_view name) {
  if (values.is_none()) return {};
  return field_from_json<std::vector<double>>(json_of(values, where, name), where, name);
}

constexpr const char* machine_parameters =
    "stages: int = 1, virtual: int = 1, group: int | None = None, transfer_ns: int = 0, "
    "shares: collections.abc.Sequence[float] | None = None, "
    "rank_speed: collections.abc.Sequence[float] | None = None";
constexpr const char* machine_lines =
    "\n    ranks: data x context parallel ranks; each is a pipeline of `stages`"
    "\n    capacity: padded tokens of a micro-batch that one rank may hold"
    "\n    cost: a CostModel or the name of a preset; qwen3-8b_h100 if None"
    "\n    stages: devices of every rank"
    "\n    virtual: chunks of layers per stage"
    "\n    group: slots that a chunk runs before the next, if virtual; the stages if None"
    "\n    transfer_ns: from the end of a chunk to the start of the next"
    "\n    shares: of each chunk in the cost; all equal if None"
    "\n    rank_speed: of each rank, 1: as fast as the cost model says; all 1 if None";

using MakePlan = StepPlan (*)(const Batch&, const Topology&, const CostModel&, const PlanOptions&);

// A function that makes a plan of a batch, a machine, costs and options.
void add_planner(nb::module_& module, const char* name, MakePlan make, const std::string& help) {
  const std::string text = std::string("def ") + name + "(" + std::string(lengths_parameter) +
                           ", ranks: int, capacity: int, *, cost: CostModel | str | None = None, " +
                           std::string(batch_parameters) + ", " + machine_parameters + ", " +
                           option_parameters<PlanOptions>() + ") -> StepPlan";
  module.def(
      name,
      [make, name](nb::handle lengths, nb::handle ranks, nb::handle capacity, nb::handle cost,
                   nb::handle extra_cost_ns, nb::handle groups, nb::handle stages,
                   nb::handle virtual_, nb::handle group, nb::handle transfer_ns, nb::handle shares,
                   nb::handle rank_speed, const nb::kwargs& options) {
        const Batch batch = batch_of(lengths, extra_cost_ns, groups, name);
        Topology topology;
        topology.ranks =
            integer_argument<std::int32_t>(ranks, name, "ranks", IntegerRange{1, max_ranks});
        topology.capacity =
            integer_argument<Tokens>(capacity, name, "capacity", IntegerRange{1, max_total_cost});
        PipelineShape& pipeline = topology.pipeline;
        pipeline.stages = integer_argument<std::int32_t>(stages, name, "stages", depth);
        pipeline.virtual_ = integer_argument<std::int32_t>(virtual_, name, "virtual", depth);
        pipeline.group = !group.is_none()
                             ? integer_argument<std::int32_t>(group, name, "group", depth)
                         : pipeline.virtual_ > 1 ? pipeline.stages
                                                 : 1;
        pipeline.transfer_ns = integer_argument<Nanoseconds>(transfer_ns, name, "transfer_ns",
                                                             IntegerRange{0, max_total_cost});
        pipeline.shares = numbers_of(shares, name, "shares");
        topology.rank_speed = numbers_of(rank_speed, name, "rank_speed");
        const CostModel model = cost_of(cost, default_cost, name);
        const auto chosen = options_of<PlanOptions>(options, name);
        const nb::gil_scoped_release release;
        return make(batch, topology, model, chosen);
      },
      nb::arg("lengths").none(), nb::arg("ranks"), nb::arg("capacity"), nb::kw_only(),
      nb::arg("cost") = nb::none(), nb::arg("extra_cost_ns") = nb::none(),
      nb::arg("groups") = nb::none(), nb::arg("stages") = 1, nb::arg("virtual") = 1,
      nb::arg("group") = nb::none(), nb::arg("transfer_ns") = 0, nb::arg("shares") = nb::none(),
      nb::arg("rank_speed") = nb::none(), nb::arg("options"), nb::sig(text.c_str()),
      (help + std::string(batch_lines) + machine_lines + option_lines<PlanOptions>()).c_str());
}

}  // namespace

void bind_plan(nb::module_& module) {
  add_planner(
      module, "plan_step", &plan_step,
      "Plans one step: which ranks run which sequences, with whom, in which order, so that "
      "the last rank finishes as early as the search can make it.\n\nLengths over the "
      "capacity and counts that cannot be filled are outcomes (status, reason), decided by "
      "the options; ValueError for a question that cannot be asked. Equal inputs give equal "
      "plans on every machine.");
  add_planner(
      module, "naive_plan",
      [](const Batch& batch, const Topology& topology, const CostModel& cost,
         const PlanOptions& options) { return naive_plan(batch, topology, cost, options); },
      "The step without a planner: sequence i goes to group i mod N, which packs next-fit.");
  add_planner(
      module, "verl_plan",
      [](const Batch& batch, const Topology& topology, const CostModel& cost,
         const PlanOptions& options) { return verl_plan(batch, topology, cost, options); },
      "The step by the rules of verl 0.9.1, on static groups.");
}

}  // namespace isochron::python
