#include "isochron/engine/model/mlp_block.h"

#include <ATen/ATen.h>

#include "isochron/engine/model/rms_norm.h"
#include "isochron/engine/model/swiglu.h"

namespace isochron {

MlpBlock::Kept MlpBlock::keep(const at::Tensor& x_TD, const LayerMasks& masks,
                              Recompute recompute) const {
  Kept kept;
  kept.x_TD = x_TD;
  RmsNormOutput normed = rms_norm(x_TD, norm_D, epsilon);
  kept.rstd_T = std::move(normed.rstd_R);
  kept.gate_up_T2F = gate_up.forward(normed.y_RD, masks.gate_up);
  if (recompute == Recompute::none) {
    kept.normed_TD = std::move(normed.y_RD);
    kept.product_TF = swiglu_TF(kept.gate_up_T2F);
  }
  return kept;
}

at::Tensor MlpBlock::result_TD(const Kept& kept, const LayerMasks& masks) const {
  return down.forward_add(kept.product_TF.defined() ? kept.product_TF : swiglu_TF(kept.gate_up_T2F),
                          masks.down, kept.x_TD);
}

MlpBlock::Gradient MlpBlock::backward(const at::Tensor& grad_TD, Kept kept,
                                      const LayerMasks& masks) const {
  std::vector<at::Tensor> down_gradients;
  down.add_gradients(grad_TD,
                     kept.product_TF.defined() ? kept.product_TF : swiglu_TF(kept.gate_up_T2F),
                     masks.down, down_gradients);
  kept.product_TF.reset();
  at::Tensor grad_gate_up_T2F = std::move(kept.gate_up_T2F);
  swiglu_backward_(grad_gate_up_T2F, down.grad_input_TD(grad_TD, masks.down));

  std::vector<at::Tensor> gate_up_gradients;
  gate_up.add_gradients(
      grad_gate_up_T2F,
      kept.normed_TD.defined() ? kept.normed_TD : rms_norm_again(kept.x_TD, kept.rstd_T, norm_D),
      masks.gate_up, gate_up_gradients);
  kept.normed_TD.reset();
  const at::Tensor grad_normed_TD = gate_up.grad_input_TD(grad_gate_up_T2F, masks.gate_up);
  grad_gate_up_T2F.reset();
  RmsNormGradient norm = rms_norm_backward(grad_normed_TD, kept.x_TD, kept.rstd_T, norm_D, grad_TD);

  Gradient gradient;
  gradient.x_TD = std::move(norm.x_RD);
  gradient.parameters.push_back(std::move(norm.weight_D));
  for (auto* gradients : {&gate_up_gradients, &down_gradients}) {
    std::move(gradients->begin(), gradients->end(), std::back_inserter(gradient.parameters));
  }
  return gradient;
}

}  // namespace isochron
