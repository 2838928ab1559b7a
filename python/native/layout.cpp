#include "isochron/layout/packed_layout.h"

#include <string>

#include "isochron/step/step_plan.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/python_value.h"
#include "python/native/record.h"
#include "python/native/signature.h"

namespace isochron::python {

void bind_layout(nb::module_& module) {
  using Self = const PackedLayout&;
  nb::class_<PackedLayout> type(
      module, "PackedLayout",
      "The tokens of a micro-batch that one rank of a context-parallel group holds, packed.");
  type.def_prop_ro(
      "cu_seqlens", [](Self self) { return view_of(self.cu_seqlens); },
      nb::rv_policy::reference_internal,
      "Starts of the padded sequences in the group, and behind them the end of the last; the rank "
      "holds 1/context_size of each.");
  type.def_prop_ro(
      "positions", [](Self self) { return view_of(self.positions); },
      nb::rv_policy::reference_internal, "Of each token its index in its sequence; 0 for padding.");
  type.def_prop_ro(
      "source", [](Self self) { return view_of(self.source); }, nb::rv_policy::reference_internal,
      "Which token of the concatenated sequences it is; -1 for padding.");
  type.def_prop_ro(
      "target", [](Self self) { return view_of(self.target); }, nb::rv_policy::reference_internal,
      "The next token of the same sequence; -1 for a last token and for padding.");
  type.def("__len__", [](Self self) { return self.source.size(); });
  type.def("__repr__", [](Self self) {
    return fmt::format("PackedLayout of {} sequences, {} tokens", self.cu_seqlens.size() - 1,
                       self.source.size());
  });
  add_equality(type);

  const std::string text =
      "def packed_layout(" + integers_parameter("lengths") +
      ", *, context_size: int = 1, context_rank: int = 0, tensor_parallel: int = 1) -> "
      "PackedLayout";
  module.def(
      "packed_layout",
      [](nb::handle lengths, nb::handle context_size, nb::handle context_rank,
         nb::handle tensor_parallel) {
        constexpr std::string_view where = "packed_layout";
        const Integers tokens(lengths, where, "lengths");
        const LayoutOptions options = {
            .context_size = integer_argument<std::int32_t>(context_size, where, "context_size"),
            .context_rank = integer_argument<std::int32_t>(context_rank, where, "context_rank"),
            .tensor_parallel =
                integer_argument<std::int32_t>(tensor_parallel, where, "tensor_parallel")};
        const nb::gil_scoped_release release;
        return packed_layout(tokens.span(), options);
      },
      nb::arg("lengths").none(), nb::kw_only(), nb::arg("context_size") = 1,
      nb::arg("context_rank") = 0, nb::arg("tensor_parallel") = 1, nb::sig(text.c_str()),
      "Which tokens a rank holds: with c > 1 ranks a sequence is padded to a multiple of 2 * c * "
      "tensor_parallel and cut into 2c chunks; rank r holds chunk r and behind it chunk 2c-1-r.");
  module.def(
      "padded_length",
      [](nb::handle length, nb::handle ranks, nb::handle tensor_parallel) {
        return padded_length(
            integer_argument<Tokens>(length, "padded_length", "length", 1, max_length),
            integer_argument<std::int64_t>(ranks, "padded_length", "ranks", 1, max_ranks),
            integer_argument<std::int32_t>(tensor_parallel, "padded_length", "tensor_parallel", 1,
                                           max_ranks));
      },
      nb::arg("length"), nb::arg("ranks"), nb::arg("tensor_parallel") = 1,
      nb::sig("def padded_length(length: int, ranks: int, tensor_parallel: int = 1) -> int"),
      "Tokens that a sequence takes of the capacity of a group of `ranks`.");
}

}  // namespace isochron::python
