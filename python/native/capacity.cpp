#include "isochron/cost/capacity.h"

#include <string>

#include "python/native/bindings.h"
#include "python/native/record.h"

namespace isochron::python {

void bind_capacity(nb::module_& module) {
  nb::class_<Capacity> type(module, "Capacity",
                            "Where the memory of the fullest device goes, in bytes, and the tokens "
                            "that the rest is for.");
  const auto tokens =
      Attribute{"tokens", &Capacity::tokens, "Of a micro-batch, on each rank: the capacity."};
  add_attributes(
      type, tokens, Attribute{"device_bytes", &Capacity::device_bytes, "All there is."},
      Attribute{"reserve_bytes", &Capacity::reserve_bytes, "A tenth, for what nobody plans."},
      Attribute{"state_bytes", &Capacity::state_bytes, "Weights, gradients, optimizer."},
      Attribute{"logits_bytes", &Capacity::logits_bytes, "Of one chunk of the loss."},
      Attribute{"activation_bytes", &Capacity::activation_bytes, "What is left."},
      Attribute{"activation_bytes_per_token", &Capacity::activation_bytes_per_token,
                "Of the capacity: all micro-batches in flight."});
  add_repr(type, tokens);
  add_equality(type);

  const std::string text =
      "def auto_capacity(shape: ModelShape, hardware: Hardware, *, ranks: int = 1, "
      "tensor_parallel: int = 1, stages: int = 1, virtual: int = 1, group: int = 1, "
      "shares: collections.abc.Sequence[float] = (), recompute: " +
      literal_type<Recompute>() +
      " = 'none', keeps_activations: bool = True, loss_chunk: int = 2048) -> Capacity";
  module.def(
      "auto_capacity",
      [](const ModelShape& shape, const Hardware& hardware, std::int64_t ranks,
         std::int32_t tensor_parallel, std::int32_t stages, std::int32_t virtual_,
         std::int32_t group, const std::vector<double>& shares, nb::handle recompute,
         bool keeps_activations, Tokens loss_chunk) {
        return auto_capacity(
            shape, hardware,
            {.ranks = ranks,
             .tensor_parallel = tensor_parallel,
             .stages = stages,
             .virtual_ = virtual_,
             .group = group,
             .shares = shares,
             .recompute = enum_argument<Recompute>(recompute, "auto_capacity", "recompute"),
             .keeps_activations = keeps_activations,
             .loss_chunk = loss_chunk});
      },
      nb::arg("shape"), nb::arg("hardware"), nb::kw_only(), nb::arg("ranks") = 1,
      nb::arg("tensor_parallel") = 1, nb::arg("stages") = 1, nb::arg("virtual") = 1,
      nb::arg("group") = 1, nb::arg("shares") = nb::tuple(), nb::arg("recompute") = "none",
      nb::arg("keeps_activations") = true, nb::arg("loss_chunk") = 2048, nb::sig(text.c_str()),
      "The capacity with which a training step fits into the memory of a device, however the slots "
      "are filled.");
}

}  // namespace isochron::python
