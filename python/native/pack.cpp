#include "isochron/pack/pack.h"

#include <nanobind/stl/vector.h>

#include <string>

#include "isochron/pack/bounds.h"
#include "isochron/pack/pack_json.h"
#include "isochron/pack/rank_schedule.h"
#include "python/native/answer.h"
#include "python/native/arrays.h"
#include "python/native/batch.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

// A schedule, and the answer of which it is a part.
struct ScheduleAnswer {
  PackAnswer packing;
  RankSchedule schedule;  // without its packing
};

PackAnswer pack_question(nb::handle lengths, nb::handle costs, nb::handle extra_cost_ns,
                         nb::handle groups, nb::handle cost, const nb::kwargs& options,
                         std::string_view where) {
  PackAnswer answer;
  answer.question = question_of(lengths, costs, extra_cost_ns, groups, cost, where);
  require_lengths(answer.question, where);
  answer.options = options_of<PackOptions>(options, where);
  return answer;
}

PackAnswer answer_of(nb::handle lengths, nb::handle costs, nb::handle extra_cost_ns,
                     nb::handle groups, nb::handle cost, const nb::kwargs& options) {
  PackAnswer answer = pack_question(lengths, costs, extra_cost_ns, groups, cost, options, "pack");
  const nb::gil_scoped_release release;
  answer.packing = pack(answer.question.sequences(), answer.options);
  return answer;
}

ScheduleAnswer schedule_of(nb::handle lengths, nb::handle ranks, nb::handle costs,
                           nb::handle extra_cost_ns, nb::handle groups, nb::handle cost,
                           const nb::kwargs& options) {
  constexpr std::string_view where = "schedule_ranks";
  ScheduleAnswer answer;
  answer.packing = pack_question(lengths, costs, extra_cost_ns, groups, cost, options, where);
  const auto num_ranks =
      integer_argument<std::int32_t>(ranks, where, "ranks", IntegerRange{1, max_ranks});
  const nb::gil_scoped_release release;
  answer.schedule =
      schedule_ranks(answer.packing.question.sequences(), num_ranks, answer.packing.options);
  answer.packing.packing = std::move(answer.schedule.packing);
  return answer;
}

void bind_packing(nb::module_& module) {
  using Self = const PackAnswer&;
  nb::class_<PackAnswer> type(module, "Packing", "Sequences in micro-batches under a capacity.");
  add_outcome(type, [](Self self) -> const Packing& { return self.packing; });
  type.def_prop_ro(
      "lower_bound", [](Self self) { return self.packing.lower_bound; },
      "No valid packing has fewer micro-batches.");
  type.def_prop_ro(
      "max_cost", [](Self self) { return self.packing.max_cost; }, "Of a micro-batch.");
  type.def_prop_ro(
      "max_cost_bound", [](Self self) { return self.packing.max_cost_bound; },
      "No packing of as many micro-batches has a smaller max_cost.");
  type.def_prop_ro(
      "microbatches", [](Self self) { return id_lists(self.packing.microbatches); },
      "The sequences of each micro-batch, ascending; empty ones, if the counts need any, last. A "
      "list "
      "made anew each time.");
  type.def_prop_ro(
      "oversized", [](Self self) { return id_list(self.packing.oversized); },
      "Each alone, over the capacity.");
  type.def_prop_ro(
      "dropped", [](Self self) { return id_list(self.packing.dropped); }, "In no micro-batch.");
  type.def_prop_ro(
      "costs", [](Self self) { return view_of(self.question.costs); },
      nb::rv_policy::reference_internal, "Of each sequence.");
  add_document(type);
  type.def("__repr__", [](Self self) {
    return fmt::format("Packing(status='{}', microbatches={}, lower_bound={}, max_cost={})",
                       name_of(self.packing.status), self.packing.microbatches.size(),
                       self.packing.lower_bound, self.packing.max_cost);
  });
}

void bind_schedule(nb::module_& module) {
  using Self = const ScheduleAnswer&;
  nb::class_<ScheduleAnswer> type(module, "RankSchedule",
                                  "The micro-batches of all ranks of a step, from one packing.");
  add_outcome(type, [](Self self) -> const Packing& { return self.packing.packing; });
  type.def_prop_ro(
      "packing", [](Self self) { return self.packing; },
      "Of all ranks, before they were dealt; also says why there is no schedule.");
  type.def_prop_ro(
      "microbatches_of_rank",
      [](Self self) { return nb::cast(self.schedule.microbatches_of_rank); },
      nb::sig("def microbatches_of_rank(self, /) -> list[list[int]]"),
      "Places in packing.microbatches, equally many for each rank, in the order of running.");
  type.def_prop_ro(
      "max_cost", [](Self self) { return self.schedule.max_cost; }, "Of a rank.");
  type.def_prop_ro(
      "lower_bound", [](Self self) { return self.schedule.lower_bound; },
      "No schedule of these sequences has a smaller max_cost.");
  type.def("__repr__", [](Self self) {
    return fmt::format("RankSchedule(status='{}', ranks={}, max_cost={}, lower_bound={})",
                       name_of(self.packing.packing.status),
                       self.schedule.microbatches_of_rank.size(), self.schedule.max_cost,
                       self.schedule.lower_bound);
  });
}

void bind_bounds(nb::module_& module) {
  const auto add = [&](const char* name, auto function, const char* help) {
    const std::string text = std::string("def ") + name + "(" + integers_parameter("lengths") +
                             ", capacity: int) -> int";
    module.def(
        name,
        [function, name](nb::handle lengths, nb::handle capacity) {
          const Integers integers(lengths, name, "lengths");
          const auto tokens =
              integer_argument<Tokens>(capacity, name, "capacity", IntegerRange{1, max_total_cost});
          const nb::gil_scoped_release release;
          return function(integers.span(), tokens);
        },
        nb::arg("lengths").none(), nb::arg("capacity"), nb::sig(text.c_str()), help);
  };
  add("microbatch_count", &microbatch_count,
      "How many micro-batches first-fit decreasing needs: cheap, so that ranks can agree on a "
      "count "
      "before they pack. pack() with that count always succeeds.");
  add("volume_bound", &volume_bound, "All tokens over the capacity, rounded up.");
  add("l2_bound", &l2_bound, "Martello and Toth's L2 bound on the number of micro-batches.");
  add("dual_feasible_bound", &dual_feasible_bound, "Fekete and Schepers' dual feasible functions.");
  add("count_bound", &count_bound, "The best of the three bounds.");
}

}  // namespace

std::string to_json(const PackAnswer& answer) {
  return to_json(answer.packing, answer.options, answer.question.cost, answer.question.batch);
}

void bind_pack(nb::module_& module) {
  bind_packing(module);
  bind_schedule(module);
  bind_bounds(module);
  const std::string tail = std::string(question_parameters);
  const std::string lines =
      std::string(batch_lines) + std::string(question_lines) + option_lines<PackOptions>();
  // Required options have no default, and come first.
  module.def("pack", &answer_of, nb::arg("lengths").none(), nb::kw_only(),
             nb::arg("costs") = nb::none(), nb::arg("extra_cost_ns") = nb::none(),
             nb::arg("groups") = nb::none(), nb::arg("cost") = nb::none(), nb::arg("options"),
             nb::sig(("def pack(" + std::string(lengths_parameter) + ", *, " + tail + ", " +
                      option_parameters<PackOptions>("capacity") + ") -> Packing")
                         .c_str()),
             ("Packs whole sequences into the fewest micro-batches that the options allow, then "
              "makes their largest cost as small as possible, then the spread.\n\nA length above "
              "the capacity is an outcome, decided by `oversize`; ValueError for a question that "
              "cannot be asked." +
              lines)
                 .c_str());
  module.def(
      "schedule_ranks", &schedule_of, nb::arg("lengths").none(), nb::arg("ranks"), nb::kw_only(),
      nb::arg("costs") = nb::none(), nb::arg("extra_cost_ns") = nb::none(),
      nb::arg("groups") = nb::none(), nb::arg("cost") = nb::none(), nb::arg("options"),
      nb::sig(("def schedule_ranks(" + std::string(lengths_parameter) + ", ranks: int, *, " + tail +
               ", " + option_parameters<PackOptions>("capacity") + ") -> RankSchedule")
                  .c_str()),
      ("The micro-batches of all ranks of a data-parallel step, from one packing: under the "
       "capacity, the same number on each rank, aligned, and balanced by cost.\n\nCounts "
       "speak of one rank." +
       lines)
          .c_str());
}

}  // namespace isochron::python
