// Forward and backward of a layer over the kept tensors of its two blocks. `full` keeps the input
// and runs the blocks once more before their backward, all but the last product.

#include "isochron/engine/model/layer.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

namespace isochron {

namespace {

// The rest of a node's state, beside its tensors.
struct Call : torch::CustomClassHolder {
  Call(std::shared_ptr<const Layer> layer_, std::shared_ptr<const ForwardPass> pass_)
      : layer(std::move(layer_)), pass(std::move(pass_)) {}
  std::shared_ptr<const Layer> layer;
  std::shared_ptr<const ForwardPass> pass;

  [[nodiscard]] LayerMasks masks() const { return pass->masks.of_layer(layer->index); }
};

struct KeptLayer {
  AttentionBlock::Kept attention;
  MlpBlock::Kept mlp;

  [[nodiscard]] std::vector<at::Tensor*> tensors() {
    return {&attention.x_TD,
            &attention.rstd_T,
            &attention.normed_TD,
            &attention.qkv_TE,
            &attention.rotated,
            &attention.attention.out_TNH,
            &attention.attention.lse_NT,
            &mlp.x_TD,
            &mlp.rstd_T,
            &mlp.normed_TD,
            &mlp.gate_up_T2F,
            &mlp.product_TF};
  }
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
      context->save_for_backward({x_TD});
      return run(x_TD, *call);
    }
    KeptLayer kept = keep(x_TD, *call, call->pass->recompute);
    std::vector<at::Tensor> saved;
    for (const at::Tensor* tensor : kept.tensors()) saved.push_back(*tensor);
    context->save_for_backward(std::move(saved));
    return call->layer->mlp.result_TD(kept.mlp, call->masks());
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          std::vector<at::Tensor> grads) {
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    KeptLayer kept = restore(context->get_saved_variables(), *call);
    const LayerMasks masks = call->masks();
    MlpBlock::Gradient mlp = call->layer->mlp.backward(grads[0].contiguous(), kept.mlp, masks);
    kept.mlp = {};
    AttentionBlock::Gradient attention = call->layer->attention.backward(
        mlp.x_TD, kept.attention, call->pass->table, *call->pass->attention, masks);
    std::vector<at::Tensor> result = {std::move(attention.x_TD)};
    for (auto* gradients : {&attention.parameters, &mlp.parameters}) {
      std::move(gradients->begin(), gradients->end(), std::back_inserter(result));
    }
    result.emplace_back();  // of `call`
    return result;
  }

 private:
  static KeptLayer restore(std::vector<at::Tensor> saved, const Call& call) {
    if (call.pass->recompute == Recompute::full) {
      return keep(saved.front(), call, Recompute::none);
    }
    KeptLayer kept;
    const std::vector<at::Tensor*> places = kept.tensors();
    for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(saved[i]);
    return kept;
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
