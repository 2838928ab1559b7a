#include "python/native/question.h"

#include <nanobind/stl/string.h>

#include <string>

#include "isochron/core/require.h"
#include "python/native/arrays.h"
#include "python/native/batch.h"
#include "python/native/python_value.h"

namespace isochron::python {

CostModel cost_of(nb::handle cost, std::string_view default_name, std::string_view where) {
  if (cost.is_none()) return cost_preset(default_name);
  if (PyUnicode_Check(cost.ptr())) return cost_preset(nb::cast<std::string>(cost));
  require(nb::isinstance<CostModel>(cost), where,
          "cost is {}, must be a CostModel or the name of one", shown_value(cost));
  return nb::cast<const CostModel&>(cost);
}

Question question_of(nb::handle lengths, nb::handle costs, nb::handle extra_cost_ns,
                     nb::handle groups, nb::handle cost, std::string_view where) {
  Question question;
  if (costs.is_none()) {
    question.batch = batch_of(lengths, extra_cost_ns, groups, where);
    question.cost = cost_of(cost, "verl", where);
    question.costs = sequence_costs(question.cost, question.batch);
    return question;
  }
  require(cost.is_none(), where, "costs is given together with cost, must be one or the other");
  require(extra_cost_ns.is_none(), where,
          "costs is given together with extra_cost_ns, must be one or the other");
  question.costs = Integers(costs, where, "costs").to_vector();
  question.cost.name = "given";
  question.has_lengths = !lengths.is_none();
  if (!question.has_lengths) {
    set_groups(question.batch, groups, question.costs.size(), where);
    return question;
  }
  question.batch = batch_of(lengths, extra_cost_ns, groups, where);
  require(question.batch.extra_cost_ns.empty(), where,
          "costs is given together with extra_cost_ns, must be one or the other");
  require(question.costs.size() == question.batch.lengths.size(), where,
          "costs has {} entries, must be {}, one for each length", question.costs.size(),
          question.batch.lengths.size());
  question.batch.extra_cost_ns = question.costs;
  return question;
}

void require_lengths(const Question& question, std::string_view where) {
  require(question.has_lengths, where,
          "the answer was made from costs alone, must be from lengths to be written down");
}

}  // namespace isochron::python
