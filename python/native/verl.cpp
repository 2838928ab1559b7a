#include <nanobind/stl/string.h>

#include <functional>
#include <string>

#include "isochron/pack/verl_microbatches.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/options.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

// `all_reduce_max` takes and returns a list of integers; None: a rank decides for itself.
VerlAgreement agreement_of(nb::handle all_reduce_max) {
  if (all_reduce_max.is_none()) return {};
  return {.all_reduce_max = [all_reduce_max](std::span<std::int64_t> numbers) {
    const nb::gil_scoped_acquire acquire;
    nb::list mine;
    for (const std::int64_t number : numbers) mine.append(number);
    const nb::object agreed = all_reduce_max(mine);
    const Integers integers(agreed, "verl_microbatches", "all_reduce_max");
    require(integers.span().size() == numbers.size(), "verl_microbatches",
            "all_reduce_max returned {} numbers, must be {}", integers.span().size(),
            numbers.size());
    std::copy(integers.span().begin(), integers.span().end(), numbers.begin());
  }};
}

}  // namespace

void bind_verl(nb::module_& module) {
  const std::string text =
      "def verl_microbatches(" + integers_parameter("lengths") +
      ", *, all_reduce_max: "
      "collections.abc.Callable[[list[int]], collections.abc.Sequence[int]] | None = None, " +
      option_parameters<VerlMicrobatchOptions>("max_token_len") + ") -> list[list[int]]";
  module.def(
      "verl_microbatches",
      [](nb::handle lengths, nb::handle all_reduce_max, const nb::kwargs& options) {
        const Integers integers(lengths, "verl_microbatches", "lengths");
        const auto chosen = options_of<VerlMicrobatchOptions>(options, "verl_microbatches");
        const VerlAgreement agreement = agreement_of(all_reduce_max);
        const auto found = [&] {
          const nb::gil_scoped_release release;
          return verl_microbatches(integers.span(), chosen, agreement);
        }();
        return id_lists(found);
      },
      nb::arg("lengths").none(), nb::kw_only(), nb::arg("all_reduce_max") = nb::none(),
      nb::arg("options"), nb::sig(text.c_str()),
      ("verl's rearrange_micro_batches on lengths, answer for answer and error for error.\n\n"
       "all_reduce_max is called exactly where verl calls its all-reduces: it takes the numbers of "
       "this rank and returns the largest of each over the ranks. AssertionError and ValueError "
       "where verl raises them, with its texts." +
       option_lines<VerlMicrobatchOptions>())
          .c_str());
  module.def(
      "verl_workload",
      [](nb::handle length) {
        return verl_workload(integer_argument<Tokens>(length, "verl_workload", "length"));
      },
      nb::arg("length"), nb::sig("def verl_workload(length: int) -> int"),
      "24576 s + s^2: what a sequence costs in verl's unit.");
  const std::string unbalance =
      "def verl_seqlen_unbalance(" + integers_parameter("values") +
      ", partitions: collections.abc.Sequence[collections.abc.Sequence[int]]) -> LoadSpread";
  module.def(
      "verl_seqlen_unbalance",
      [](nb::handle values, nb::handle partitions) {
        return verl_seqlen_unbalance(
            Integers(values, "verl_seqlen_unbalance", "values").span(),
            id_lists_of(partitions, "verl_seqlen_unbalance", "partitions"));
      },
      nb::arg("values"), nb::arg("partitions"), nb::sig(unbalance.c_str()),
      "verl's log_seqlen_unbalance; load_spread() cuts the input into as many parts as ranks.");
}

}  // namespace isochron::python
