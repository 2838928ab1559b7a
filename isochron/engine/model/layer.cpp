// Forward and backward of a layer over the kept tensors of its two blocks. `full` keeps the input
// and runs the blocks once more before their backward, all but the last product.

#include "isochron/engine/model/layer.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "isochron/core/require.h"

namespace isochron {

namespace {

struct KeptLayer {
  AttentionBlock::Kept attention;
  MlpBlock::Kept mlp;
};

// The state of a node. The kept tensors are its own, not those of autograd, which would hold them
// until the backward has ended: so each goes as soon as the backward has used it.
struct Call : torch::CustomClassHolder {
  Call(std::shared_ptr<const Layer> layer_, std::shared_ptr<const ForwardPass> pass_)
      : layer(std::move(layer_)), pass(std::move(pass_)) {}
  std::shared_ptr<const Layer> layer;
  std::shared_ptr<const ForwardPass> pass;
  std::optional<KeptLayer> kept;  // from the forward to the backward

  [[nodiscard]] LayerMasks masks() const { return pass->masks.of_layer(layer->index); }
};

KeptLayer keep(const at::Tensor& x_TD, const Call& call, Recompute recompute) {
  const LayerMasks masks = call.masks();
  KeptLayer kept;
  kept.attention =
      call.layer->attention.keep(x_TD, call.pass->table, *call.pass->attention, masks, recompute);
  kept.mlp = call.layer->mlp.keep(call.layer->attention.result_TD(kept.attention, masks), masks,
                                  recompute);
  return kept;
}

// The result alone, with each block's tensors gone as soon as they are used.
at::Tensor run(const at::Tensor& x_TD, const Call& call) {
  const Layer& layer = *call.layer;
  const LayerMasks masks = call.masks();
  constexpr auto least = Recompute::selective;
  const at::Tensor middle_TD = layer.attention.result_TD(
      layer.attention.keep(x_TD, call.pass->table, *call.pass->attention, masks, least), masks);
  return layer.mlp.result_TD(layer.mlp.keep(middle_TD, masks, least), masks);
}

struct LayerNode : torch::autograd::Function<LayerNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x_TD,
                            at::TensorList /*parameters*/, const c10::intrusive_ptr<Call>& call) {
    context->saved_data["call"] = at::IValue::make_capsule(call);
    if (call->pass->recompute == Recompute::full) {
      call->kept.emplace().attention.x_TD = x_TD.detach();
      return run(x_TD, *call);
    }
    call->kept = keep(x_TD.detach(), *call, call->pass->recompute);
    return call->layer->mlp.result_TD(call->kept->mlp, call->masks());
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          std::vector<at::Tensor> grads) {
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    ISOCHRON_ASSERT(call->kept.has_value());  // one backward for each forward
    KeptLayer kept = *std::exchange(call->kept, std::nullopt);
    if (call->pass->recompute == Recompute::full) {
      // What is cheap to compute a third time is not worth its memory here either.
      kept = keep(kept.attention.x_TD, *call, Recompute::selective);
    }
    const LayerMasks masks = call->masks();
    MlpBlock::Gradient mlp =
        call->layer->mlp.backward(grads[0].contiguous(), std::move(kept.mlp), masks);
    AttentionBlock::Gradient attention = call->layer->attention.backward(
        mlp.x_TD, std::move(kept.attention), call->pass->table, *call->pass->attention, masks);
    std::vector<at::Tensor> result = {std::move(attention.x_TD)};
    for (auto* gradients : {&attention.parameters, &mlp.parameters}) {
      std::move(gradients->begin(), gradients->end(), std::back_inserter(result));
    }
    result.emplace_back();  // of `call`
    return result;
  }
};

}  // namespace

at::Tensor layer_TD(const at::Tensor& x_TD, const std::shared_ptr<const Layer>& layer,
                    const std::shared_ptr<const ForwardPass>& pass) {
  const auto call = c10::make_intrusive<Call>(layer, pass);
  if (!at::GradMode::is_enabled()) return run(x_TD, *call);
  return LayerNode::apply(x_TD, at::TensorList(layer->parameters), call);
}

}  // namespace isochron
