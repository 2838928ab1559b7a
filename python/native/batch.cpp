#include "python/native/batch.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>

#include "isochron/core/require.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/record.h"

namespace isochron::python {

namespace {

// Numbers groups by first occurrence.
class GroupNumbers {
 public:
  explicit GroupNumbers(Batch& batch) : batch_(batch) {}

  void add(std::string name) {
    const PromptGroupId fresh(static_cast<std::int32_t>(batch_.group_names.size()));
    const auto [entry, is_new] = id_of_.try_emplace(std::move(name), fresh);
    if (is_new) batch_.group_names.push_back(entry->first);
    batch_.groups.push_back(entry->second);
  }

 private:
  Batch& batch_;
  std::map<std::string, PromptGroupId, std::less<>> id_of_;
};

bool is_list_of_texts(nb::handle values) {
  if (!PyList_Check(values.ptr()) && !PyTuple_Check(values.ptr())) return false;
  const nb::object items = nb::borrow(values);
  return nb::len(items) > 0 && PyUnicode_Check(nb::object(items[0]).ptr());
}

}  // namespace

void set_groups(Batch& batch, nb::handle groups, std::size_t count, std::string_view where) {
  if (groups.is_none()) return;
  GroupNumbers numbers(batch);
  if (is_list_of_texts(groups)) {
    for (const nb::handle group : nb::borrow(groups)) {
      require(PyUnicode_Check(group.ptr()), where,
              "groups[{}] is {}, must be a text like the first", batch.groups.size(),
              shown_value(group));
      numbers.add(nb::cast<std::string>(group));
    }
  } else {
    const Integers integers(groups, where, "groups");
    for (const std::int64_t group : integers.span()) numbers.add(std::to_string(group));
  }
  require(batch.groups.size() == count, where,
          "groups has {} entries, must be {}, one for each sequence", batch.groups.size(), count);
}

Batch batch_of(nb::handle lengths, nb::handle extra_cost_ns, nb::handle groups,
               std::string_view where) {
  if (nb::isinstance<Batch>(lengths)) {
    require(extra_cost_ns.is_none() && groups.is_none(), where,
            "lengths is a Batch with extra_cost_ns or groups beside it, must have them inside");
    return nb::cast<const Batch&>(lengths);
  }
  Batch batch;
  batch.lengths = Integers(lengths, where, "lengths").to_vector();
  if (!extra_cost_ns.is_none()) {
    batch.extra_cost_ns = Integers(extra_cost_ns, where, "extra_cost_ns").to_vector();
    require(batch.extra_cost_ns.size() == batch.lengths.size(), where,
            "extra_cost_ns has {} entries, must be {}, one for each length",
            batch.extra_cost_ns.size(), batch.lengths.size());
  }
  set_groups(batch, groups, batch.lengths.size(), where);
  return batch;
}

void bind_batch(nb::module_& module) {
  nb::class_<Batch> type(
      module, "Batch",
      "The sequences of a batch: lengths, and where given extra costs and prompt "
      "groups.");
  const std::string init = "def __init__(self, lengths: isochron.arrays.IntegerArray, *, " +
                           std::string(batch_parameters) + ") -> None";
  type.def(
      "__init__",
      [](Batch* self, nb::handle lengths, nb::handle extra_cost_ns, nb::handle groups) {
        new (self) Batch(batch_of(lengths, extra_cost_ns, groups, "Batch"));
      },
      nb::arg("lengths").none(), nb::kw_only(), nb::arg("extra_cost_ns") = nb::none(),
      nb::arg("groups") = nb::none(), nb::sig(init.c_str()));
  type.def_prop_ro(
      "lengths", [](const Batch& self) { return view_of(self.lengths); },
      nb::rv_policy::reference_internal, "Tokens of each sequence.");
  type.def_prop_ro(
      "extra_cost_ns", [](const Batch& self) { return view_of(self.extra_cost_ns); },
      nb::rv_policy::reference_internal, "Of each sequence; empty if not given.");
  type.def_prop_ro(
      "groups", [](const Batch& self) { return id_view(self.groups); },
      nb::rv_policy::reference_internal,
      "The prompt group of each sequence, numbered by first occurrence; empty if not given.");
  type.def_ro("group_names", &Batch::group_names, "Of each group number.");
  type.def("__len__", [](const Batch& self) { return self.lengths.size(); });
  type.def("__repr__", [](const Batch& self) {
    return "Batch of " + std::to_string(self.lengths.size()) + " sequences";
  });
  add_equality(type);

  module.def("parse_batch", &parse_batch, nb::arg("text"),
             "Reads lengths: a JSON array, CSV with a column `length` (and `group`, "
             "`extra_cost_ns`), or one integer a line.");
  module.def(
      "long_tailed_lengths",
      [](nb::handle count, nb::handle seed) {
        return owned_array(long_tailed_lengths(
            integer_argument<std::int32_t>(count, "long_tailed_lengths", "count", 0),
            static_cast<std::uint64_t>(
                integer_argument<std::int64_t>(seed, "long_tailed_lengths", "seed", 0))));
      },
      nb::arg("count"), nb::arg("seed") = 0,
      nb::sig("def long_tailed_lengths(count: int, seed: int = 0) -> "
              "numpy.typing.NDArray[numpy.int64]"),
      "Lengths for demonstrations, equal on every machine.");
}

}  // namespace isochron::python
