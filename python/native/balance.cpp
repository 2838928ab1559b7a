#include "isochron/balance/balance.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "isochron/balance/balance_json.h"
#include "isochron/check/check.h"
#include "python/native/answer.h"
#include "python/native/batch.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/options.h"
#include "python/native/question.h"

namespace isochron::python {

namespace {

BalanceAnswer answer_of(nb::handle lengths, nb::handle ranks, nb::handle costs,
                        nb::handle extra_cost_ns, nb::handle groups, nb::handle cost,
                        const nb::kwargs& options) {
  BalanceAnswer answer;
  answer.question = question_of(lengths, costs, extra_cost_ns, groups, cost, "balance");
  answer.ranks =
      integer_argument<std::int32_t>(ranks, "balance", "ranks", IntegerRange{1, max_ranks});
  answer.options = options_of<BalanceOptions>(options, "balance");
  const nb::gil_scoped_release release;
  answer.balance = balance(answer.question.sequences(), answer.ranks, answer.options);
  return answer;
}

}  // namespace

std::string to_json(const BalanceAnswer& answer) {
  require_lengths(answer.question, "balance");
  return to_json(answer.balance, answer.ranks, answer.options, answer.question.cost,
                 answer.question.batch);
}

void bind_balance(nb::module_& module) {
  nb::class_<BalanceAnswer> type(module, "Balance", "Which rank has which sequences.");
  add_outcome(type, [](const BalanceAnswer& self) -> const Balance& { return self.balance; });
  type.def_prop_ro(
      "max_cost", [](const BalanceAnswer& self) { return self.balance.max_cost; },
      "Of the most loaded rank; with mini-batches the sum over them.");
  type.def_prop_ro(
      "mean_cost", [](const BalanceAnswer& self) { return self.balance.mean_cost; }, "Of a rank.");
  type.def_prop_ro(
      "lower_bound", [](const BalanceAnswer& self) { return self.balance.lower_bound; },
      "No valid assignment has a smaller max_cost.");
  type.def_prop_ro(
      "sequences_of_rank",
      [](const BalanceAnswer& self) { return id_lists(self.balance.sequences_of_rank); },
      "The sequences of each rank, mini-batch by mini-batch; a list made anew each time.");
  type.def_prop_ro(
      "costs", [](const BalanceAnswer& self) { return view_of(self.question.costs); },
      nb::rv_policy::reference_internal, "Of each sequence: what was balanced.");
  add_document(type);
  type.def("__repr__", [](const BalanceAnswer& self) {
    return fmt::format("Balance(status='{}', max_cost={}, lower_bound={}, ranks={})",
                       name_of(self.balance.status), self.balance.max_cost,
                       self.balance.lower_bound, self.ranks);
  });

  const std::string text = "def balance(" + std::string(lengths_parameter) +
                           " | None, ranks: int, *, " + std::string(question_parameters) + ", " +
                           option_parameters<BalanceOptions>() + ") -> Balance";
  module.def(
      "balance", &answer_of, nb::arg("lengths").none(), nb::arg("ranks"), nb::kw_only(),
      nb::arg("costs") = nb::none(), nb::arg("extra_cost_ns") = nb::none(),
      nb::arg("groups") = nb::none(), nb::arg("cost") = nb::none(), nb::arg("options"),
      nb::sig(text.c_str()),
      ("Assigns every sequence to a rank so that the largest sum of costs is as small as "
       "possible.\n"
       "\nNever worse than Karmarkar-Karp or longest-first. No assignment under the capacity is an "
       "outcome (status, reason); ValueError for a question that cannot be asked." +
       std::string(batch_lines) + std::string(question_lines) + option_lines<BalanceOptions>())
          .c_str());
}

}  // namespace isochron::python
