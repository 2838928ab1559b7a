#include "isochron/pad/pad.h"

#include <nanobind/stl/vector.h>

#include <string>

#include "python/native/answer.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/record.h"

namespace isochron::python {

namespace {

void bind_rows(nb::module_& module) {
  nb::class_<PaddedMinibatch> minibatch(module, "PaddedMinibatch",
                                        "Positions begin to end - 1 of PaddedRows.rows.");
  const auto begin = Attribute{"begin", &PaddedMinibatch::begin, "First position."};
  const auto end = Attribute{"end", &PaddedMinibatch::end, "Behind the last position."};
  const auto num_real =
      Attribute{"num_real", &PaddedMinibatch::num_real, "What every denominator counts."};
  const auto is_run =
      Attribute{"is_run", &PaddedMinibatch::is_run, "Not without a real row, on any rank."};
  add_attributes(minibatch, begin, end, num_real, is_run);
  add_repr(minibatch, begin, end, num_real, is_run);
  add_equality(minibatch);

  nb::class_<PaddedRows> rows(module, "PaddedRows", "Rows whose number divides.");
  add_outcome(rows, [](const PaddedRows& self) -> const PaddedRows& { return self; });
  const auto real = Attribute{"num_real", &PaddedRows::num_real, "Rows of the input."};
  const auto padding = Attribute{"num_padding", &PaddedRows::num_padding, "Rows that were added."};
  add_attributes(rows, real, padding,
                 Attribute{"minibatches", &PaddedRows::minibatches, "In order."});
  rows.def_prop_ro(
      "rows", [](const PaddedRows& self) { return id_view(self.rows); },
      nb::rv_policy::reference_internal,
      "The row at each position: real rows 0 to n - 1 in order, padding rows n and up between "
      "them.");
  add_repr(rows, real, padding);
  add_equality(rows);
}

}  // namespace

void bind_pad(nb::module_& module) {
  bind_rows(module);
  module.def(
      "pad_rows",
      [](nb::handle num_rows, const nb::kwargs& options) {
        const auto count = integer_argument<std::int32_t>(num_rows, "pad_rows", "num_rows");
        const auto chosen = options_of<PadOptions>(options, "pad_rows");
        const nb::gil_scoped_release release;
        return pad_rows(count, chosen);
      },
      nb::arg("num_rows"), nb::arg("options"),
      nb::sig(
          ("def pad_rows(num_rows: int, *, " + option_parameters<PadOptions>() + ") -> PaddedRows")
              .c_str()),
      ("Makes the number of rows a multiple, by the policy `pad`.\n\n`rows` adds the fewest "
       "padding "
       "rows and spreads them evenly, `uneven` leaves the rows as they are, `error` is infeasible "
       "unless they divide." +
       option_lines<PadOptions>())
          .c_str());
  module.def(
      "required_multiple",
      [](nb::handle step, const nb::kwargs& options) {
        return required_multiple(options_of<PadMultipleOptions>(options, "required_multiple"),
                                 integer_argument<std::int64_t>(step, "required_multiple", "step"));
      },
      nb::arg("step"), nb::arg("options"),
      nb::sig(("def required_multiple(step: int, *, " + option_parameters<PadMultipleOptions>() +
               ") -> int")
                  .c_str()),
      ("The smallest number whose multiples divide into the ranks and mini-batches of every model "
       "that trains at `step`." +
       option_lines<PadMultipleOptions>())
          .c_str());
  module.def(
      "num_padding_rows",
      [](nb::handle num_rows, nb::handle multiple) {
        return num_padding_rows(
            integer_argument<std::int64_t>(num_rows, "num_padding_rows", "num_rows"),
            integer_argument<std::int64_t>(multiple, "num_padding_rows", "multiple"));
      },
      nb::arg("num_rows"), nb::arg("multiple"),
      nb::sig("def num_padding_rows(num_rows: int, multiple: int) -> int"),
      "The fewest rows to add so that `multiple` divides the sum; none to no rows.");
  module.def(
      "num_real_between",
      [](nb::handle num_real, nb::handle num_rows, nb::handle begin, nb::handle end) {
        const auto number = [](nb::handle value, std::string_view name) {
          return integer_argument<std::int32_t>(value, "num_real_between", name);
        };
        return num_real_between(number(num_real, "num_real"), number(num_rows, "num_rows"),
                                number(begin, "begin"), number(end, "end"));
      },
      nb::arg("num_real"), nb::arg("num_rows"), nb::arg("begin"), nb::arg("end"),
      nb::sig("def num_real_between(num_real: int, num_rows: int, begin: int, end: int) -> int"),
      "How many of the positions begin to end - 1 hold a real row.");
}

}  // namespace isochron::python
