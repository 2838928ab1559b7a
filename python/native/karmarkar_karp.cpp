#include "isochron/balance/karmarkar_karp.h"

#include <nanobind/stl/string.h>

#include <string>

#include "isochron/balance/metrics.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/options.h"
#include "python/native/record.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

// karmarkar_karp() or balanced_partitions() in the type of the values.
template <class Partition>
IdLists partitioned(nb::handle values, nb::handle parts, nb::handle sizes, std::string_view where,
                    const Partition& partition) {
  const Numbers numbers(values, where, "values");
  const auto num_parts = integer_argument<std::int32_t>(parts, where, "parts");
  const auto part_sizes = enum_argument<PartSizes>(sizes, where, "sizes");
  const auto found = [&] {
    const nb::gil_scoped_release release;
    return std::visit([&](const auto& span) { return partition(span, num_parts, part_sizes); },
                      numbers.spans());
  }();
  return id_lists(found);
}

}  // namespace

void bind_karmarkar_karp(nb::module_& module) {
  const std::string parameters = "(values: " + std::string(numbers_type) +
                                 ", parts: int, sizes: " + literal_type<PartSizes>() +
                                 ") -> list[list[int]]";
  module.def(
      "karmarkar_karp",
      [](nb::handle values, nb::handle parts, nb::handle sizes) {
        return partitioned(values, parts, sizes, "karmarkar_karp",
                           [](const auto&... arguments) { return karmarkar_karp(arguments...); });
      },
      nb::arg("values").none(), nb::arg("parts"), nb::arg("sizes"),
      nb::sig(("def karmarkar_karp" + parameters).c_str()),
      "Divides the items into sets of about equal sums by largest differencing, bit for bit as "
      "verl "
      "and slime do.\n\nThe sets come in descending order of (sum, number of items, first item), "
      "items in the order in which the method joined them. Sums are formed in the type of the "
      "values: integers, float32 or float64.");
  module.def(
      "balanced_partitions",
      [](nb::handle values, nb::handle parts, nb::handle sizes) {
        return partitioned(
            values, parts, sizes, "balanced_partitions",
            [](const auto&... arguments) { return balanced_partitions(arguments...); });
      },
      nb::arg("values").none(), nb::arg("parts"), nb::arg("sizes"),
      nb::sig(("def balanced_partitions" + parameters).c_str()),
      "The sets of karmarkar_karp() in the same order, the items of each ascending: verl's "
      "get_seqlen_balanced_partitions.");

  nb::class_<LoadSpread> spread(
      module, "LoadSpread", "Sums over ranks before and after balancing: verl's global_seqlen/*.");
  add_record(
      spread, "LoadSpread",
      Attribute{"min", &LoadSpread::min, "Before: the input order cut into contiguous parts."},
      Attribute{"max", &LoadSpread::max, "Before."},
      Attribute{"minmax_diff", &LoadSpread::minmax_diff, "Before."},
      Attribute{"balanced_min", &LoadSpread::balanced_min, "After."},
      Attribute{"balanced_max", &LoadSpread::balanced_max, "After."},
      Attribute{"mean", &LoadSpread::mean, "Of a rank."});
  const std::string spread_signature =
      "def load_spread(" + integers_parameter("values") +
      ", sequences_of_rank: collections.abc.Sequence[collections.abc.Sequence[int]]) -> LoadSpread";
  module.def(
      "load_spread",
      [](nb::handle values, nb::handle sequences_of_rank) {
        return load_spread(Integers(values, "load_spread", "values").span(),
                           id_lists_of(sequences_of_rank, "load_spread", "sequences_of_rank"));
      },
      nb::arg("values").none(), nb::arg("sequences_of_rank"), nb::sig(spread_signature.c_str()),
      "The spread of values (lengths or costs) over the ranks.");
}

}  // namespace isochron::python
