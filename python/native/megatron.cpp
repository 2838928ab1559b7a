#include <nanobind/stl/string.h>

#include <string>

#include "isochron/plan/megatron_schedule.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/python_value.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

constexpr std::string_view where = "megatron_schedule";

PyObject* error_of(MegatronFailure failure) {
  switch (failure) {
    case MegatronFailure::index:
      return PyExc_IndexError;
    case MegatronFailure::endless:
      return PyExc_RuntimeError;
    default:
      return PyExc_AssertionError;
  }
}

// Of every micro-batch and rank the sequences, in the order in which they joined the rank's group.
nb::list lists_of(const std::vector<Slot>& microbatches) {
  nb::list lists;
  for (const Slot& slot : microbatches) {
    nb::list ranks;
    for (const ContextGroup& group : slot) {
      for (std::int64_t i = 0; i < group.ranks.size; ++i) {
        nb::list sequences;
        for (const SequenceId id : group.sequences) sequences.append(id.value());
        ranks.append(sequences);
      }
    }
    lists.append(ranks);
  }
  return lists;
}

}  // namespace

void bind_megatron(nb::module_& module) {
  const std::string text = "def megatron_schedule(" + integers_parameter("lengths") +
                           ", *, ranks: int, capacity: int, min_context_size: int = 1, "
                           "slot_multiple: int = 1) -> list[list[list[int]]]";
  module.def(
      "megatron_schedule",
      [](nb::handle lengths, nb::handle ranks, nb::handle capacity, nb::handle min_context_size,
         nb::handle slot_multiple) {
        const Integers integers(lengths, where, "lengths");
        MegatronOptions options;
        options.ranks = integer_argument<std::int32_t>(ranks, where, "ranks", 1);
        options.capacity = integer_argument<Tokens>(capacity, where, "capacity", 1);
        options.min_context_size =
            integer_argument<std::int32_t>(min_context_size, where, "min_context_size", 1);
        options.slot_multiple =
            integer_argument<std::int32_t>(slot_multiple, where, "slot_multiple", 1);
        const MegatronSchedule schedule = [&] {
          const nb::gil_scoped_release release;
          return megatron_schedule(integers.span(), options);
        }();
        if (schedule.failure != MegatronFailure::none) {
          PyErr_SetString(error_of(schedule.failure), schedule.error.c_str());
          throw nb::python_error();
        }
        return lists_of(schedule.microbatches);
      },
      nb::arg("lengths"), nb::kw_only(), nb::arg("ranks"), nb::arg("capacity"),
      nb::arg("min_context_size") = 1, nb::arg("slot_multiple") = 1, nb::sig(text.c_str()),
      "DefaultDynamicCPScheduler of Megatron's development branch: the sequences of every "
      "micro-batch and rank.\n\nAssertionError and IndexError where it raises them, RuntimeError "
      "where it would not end.");
}

}  // namespace isochron::python
