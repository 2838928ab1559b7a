#include "isochron/engine/model/attention_block.h"

#include <ATen/ATen.h>

#include "isochron/engine/model/rms_norm.h"

namespace isochron {

at::Tensor AttentionBlock::query_key_heads(const at::Tensor& qkv_TE) const {
  return qkv_TE.view({qkv_TE.size(0), heads + 2 * kv_heads, head_dim})
      .narrow(1, 0, heads + kv_heads);
}

AttentionBlock::Heads AttentionBlock::split(const at::Tensor& qkv_TE,
                                            const at::Tensor& rotated) const {
  const at::Tensor all = qkv_TE.view({qkv_TE.size(0), heads + 2 * kv_heads, head_dim});
  const at::Tensor& query_key = rotated.defined() ? rotated : all;
  return {.q_TNH = query_key.narrow(1, 0, heads),
          .k_TGH = query_key.narrow(1, heads, kv_heads),
          .v_TGH = all.narrow(1, heads + kv_heads, kv_heads)};
}

AttentionBlock::Kept AttentionBlock::keep(const at::Tensor& x_TD, const RopeTable& table,
                                          const Attention& attention, const LayerMasks& masks,
                                          Recompute recompute) const {
  Kept kept;
  kept.x_TD = x_TD;
  RmsNormOutput normed = rms_norm(x_TD, norm_D, epsilon);
  kept.rstd_T = std::move(normed.rstd_R);
  kept.qkv_TE = qkv.forward(normed.y_RD, masks.qkv);
  if (recompute == Recompute::none) kept.normed_TD = normed.y_RD;
  normed.y_RD.reset();

  at::Tensor rotated;
  if (head_norm.is_used()) {
    rotated = norm_and_rotate_heads(query_key_heads(kept.qkv_TE), heads, head_norm, table);
    if (recompute == Recompute::none) kept.rotated = rotated;
  } else {
    rotate_heads_(query_key_heads(kept.qkv_TE), table);
  }
  const Heads input = split(kept.qkv_TE, rotated);
  kept.attention = attention.forward(input.q_TNH, input.k_TGH, input.v_TGH);
  return kept;
}

at::Tensor AttentionBlock::result_TD(const Kept& kept, const LayerMasks& masks) const {
  return output.forward_add(kept.attention.out_TNH.flatten(1), masks.output, kept.x_TD);
}

AttentionBlock::Gradient AttentionBlock::backward(const at::Tensor& grad_TD, Kept kept,
                                                  const RopeTable& table,
                                                  const Attention& attention,
                                                  const LayerMasks& masks) const {
  std::vector<at::Tensor> output_gradients;
  output.add_gradients(grad_TD, kept.attention.out_TNH.flatten(1), masks.output, output_gradients);

  at::Tensor grad_qkv_TE = at::empty_like(kept.qkv_TE);
  {
    at::Tensor rotated = kept.rotated;
    if (head_norm.is_used() && !rotated.defined()) {
      rotated = norm_and_rotate_heads(query_key_heads(kept.qkv_TE), heads, head_norm, table);
    }
    const Heads input = split(kept.qkv_TE, rotated);
    const Heads grads = split(grad_qkv_TE, {});
    attention.backward(output.grad_input_TD(grad_TD, masks.output).view_as(kept.attention.out_TNH),
                       input.q_TNH, input.k_TGH, input.v_TGH, kept.attention,
                       {.q_TNH = grads.q_TNH, .k_SGH = grads.k_TGH, .v_SGH = grads.v_TGH});
  }
  kept.attention = {};
  kept.rotated.reset();
  HeadNormGradient head_norms;
  const at::Tensor grad_query_key = query_key_heads(grad_qkv_TE);
  if (head_norm.is_used()) {
    head_norms = norm_and_rotate_heads_backward_(grad_query_key, query_key_heads(kept.qkv_TE),
                                                 heads, head_norm, table);
  } else {
    rotate_heads_back_(grad_query_key, table);
  }

  kept.qkv_TE.reset();
  std::vector<at::Tensor> qkv_gradients;
  qkv.add_gradients(
      grad_qkv_TE,
      kept.normed_TD.defined() ? kept.normed_TD : rms_norm_again(kept.x_TD, kept.rstd_T, norm_D),
      masks.qkv, qkv_gradients);
  kept.normed_TD.reset();
  const at::Tensor grad_normed_TD = qkv.grad_input_TD(grad_qkv_TE, masks.qkv);
  RmsNormGradient norm = rms_norm_backward(grad_normed_TD, kept.x_TD, kept.rstd_T, norm_D, grad_TD);

  Gradient gradient;
  gradient.x_TD = std::move(norm.x_RD);
  gradient.parameters.push_back(std::move(norm.weight_D));
  std::move(qkv_gradients.begin(), qkv_gradients.end(), std::back_inserter(gradient.parameters));
  if (head_norm.is_used()) {
    gradient.parameters.push_back(std::move(head_norms.q_H));
    gradient.parameters.push_back(std::move(head_norms.k_H));
  }
  std::move(output_gradients.begin(), output_gradients.end(),
            std::back_inserter(gradient.parameters));
  return gradient;
}

}  // namespace isochron
