#include "isochron/cost/flops.h"

#include <nanobind/stl/optional.h>

#include <string>

#include "isochron/cost/memory.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/options.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

Triangle triangle_of(bool is_exact) { return is_exact ? Triangle::exact : Triangle::half_square; }

void bind_memory(nb::module_& module) {
  const std::string activation =
      "def activation_bytes_per_token(shape: ModelShape, recompute: " + literal_type<Recompute>() +
      " = 'none') -> int";
  module.def(
      "activation_bytes_per_token",
      [](const ModelShape& shape, nb::handle recompute) {
        return activation_bytes_per_token(
            shape, enum_argument<Recompute>(recompute, "activation_bytes_per_token", "recompute"));
      },
      nb::arg("shape"), nb::arg("recompute") = "none", nb::sig(activation.c_str()),
      "Bytes that the layers keep for the backward of one token, on one device.");
  module.def("state_bytes", &state_bytes, nb::arg("parameters"), nb::arg("optimizer_shards") = 1,
             "Bytes of weights, gradients and optimizer on one device.");
  module.def("logits_bytes", &logits_bytes, nb::arg("shape"), nb::arg("tokens"),
             nb::arg("tensor_parallel") = 1,
             "Bytes of the output head for so many tokens at a time.");
}

}  // namespace

void bind_flops(nb::module_& module) {
  const std::string parameters = "(shape: ModelShape, " + integers_parameter("lengths");
  module.def(
      "forward_flops",
      [](const ModelShape& shape, nb::handle lengths, bool exact) {
        return forward_flops(shape, Integers(lengths, "forward_flops", "lengths").span(),
                             triangle_of(exact));
      },
      nb::arg("shape"), nb::arg("lengths"), nb::kw_only(), nb::arg("exact") = false,
      nb::sig(("def forward_flops" + parameters + ", *, exact: bool = False) -> float").c_str()),
      "FLOPs of the forward of a packed causal batch; exact: L (L + 1) / 2 pairs of tokens instead "
      "of L^2 / 2.");
  module.def(
      "backward_flops",
      [](const ModelShape& shape, nb::handle lengths, bool exact) {
        return backward_flops(shape, Integers(lengths, "backward_flops", "lengths").span(),
                              triangle_of(exact));
      },
      nb::arg("shape"), nb::arg("lengths"), nb::kw_only(), nb::arg("exact") = false,
      nb::sig(("def backward_flops" + parameters + ", *, exact: bool = False) -> float").c_str()),
      "Twice the forward.");
  module.def(
      "model_flops",
      [](const ModelShape& shape, nb::handle lengths) {
        return model_flops(shape, Integers(lengths, "model_flops", "lengths").span());
      },
      nb::arg("shape"), nb::arg("lengths"),
      nb::sig(("def model_flops" + parameters + ") -> float").c_str()),
      "Forward and backward with half squares: what train/mfu means.");
  module.def(
      "verl_flops",
      [](const ModelShape& shape, nb::handle lengths) {
        return verl_flops(shape, Integers(lengths, "verl_flops", "lengths").span());
      },
      nb::arg("shape"), nb::arg("lengths"),
      nb::sig(("def verl_flops" + parameters + ") -> float").c_str()),
      "Forward and backward by verl's count; for comparison.");
  module.def("mfu", &mfu, nb::arg("flops"), nb::arg("seconds"), nb::arg("hardware").none(),
             nb::arg("devices"),
             "Model FLOPs utilization: the share of the peak of all devices; None if unknown.");
  bind_memory(module);
}

}  // namespace isochron::python
