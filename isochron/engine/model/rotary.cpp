#include "isochron/engine/model/rotary.h"

#include <ATen/ATen.h>

#include "isochron/engine/model/cpu_kernels.h"
#include "isochron/engine/model/cuda_kernels.h"
#include "isochron/engine/model/rms_norm.h"

namespace isochron {

namespace {

void turn_(const at::Tensor& heads_TMH, const at::Tensor& cos_TR, const at::Tensor& sin_TR,
           double direction) {
  const std::int64_t half = heads_TMH.size(2) / 2;
  const at::Tensor first = heads_TMH.narrow(2, 0, half);
  const at::Tensor second = heads_TMH.narrow(2, half, half);
  const at::Tensor cos_T1R = cos_TR.unsqueeze(1);
  const at::Tensor sin_T1R = sin_TR.unsqueeze(1) * direction;
  const at::Tensor turned = first * cos_T1R - second * sin_T1R;
  second.copy_(second * cos_T1R + first * sin_T1R);
  first.copy_(turned);
}

}  // namespace

void rotate_heads_(const at::Tensor& heads_TMH, const RopeTable& table) {
  if (cpu::has_kernels(heads_TMH)) return cpu::rotate_heads_(heads_TMH, table, Turn::forward);
  if (cuda::has_rotation(heads_TMH)) return cuda::rotate_heads_(heads_TMH, table, Turn::forward);
  turn_(heads_TMH, table.cos_TR, table.sin_TR, 1);
}

void rotate_heads_back_(const at::Tensor& heads_TMH, const RopeTable& table) {
  if (cpu::has_kernels(heads_TMH)) return cpu::rotate_heads_(heads_TMH, table, Turn::back);
  if (cuda::has_rotation(heads_TMH)) return cuda::rotate_heads_(heads_TMH, table, Turn::back);
  turn_(heads_TMH, table.cos_TR, table.sin_TR, -1);
}

at::Tensor norm_and_rotate_heads(const at::Tensor& heads_TMH, std::int64_t query_heads,
                                 const HeadNorm& norm, const RopeTable& table) {
  if (cpu::has_kernels(heads_TMH)) {
    return cpu::norm_and_rotate_heads(heads_TMH, query_heads, norm, table);
  }
  if (cuda::has_rotation(heads_TMH)) {
    return cuda::norm_and_rotate_heads(heads_TMH, query_heads, norm, table);
  }
  const std::int64_t key_heads = heads_TMH.size(1) - query_heads;
  at::Tensor out_TMH = at::empty(heads_TMH.sizes(), heads_TMH.options());
  const auto norm_into = [&](std::int64_t first, std::int64_t count, const at::Tensor& weight_H) {
    out_TMH.narrow(1, first, count)
        .copy_(rms_norm(heads_TMH.narrow(1, first, count), weight_H, norm.epsilon).y_RD);
  };
  norm_into(0, query_heads, norm.q_H);
  norm_into(query_heads, key_heads, norm.k_H);
  rotate_heads_(out_TMH, table);
  return out_TMH;
}

HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor& grad_TMH,
                                                 const at::Tensor& heads_TMH,
                                                 std::int64_t query_heads, const HeadNorm& norm,
                                                 const RopeTable& table) {
  if (cpu::has_kernels(heads_TMH)) {
    return cpu::norm_and_rotate_heads_backward_(grad_TMH, heads_TMH, query_heads, norm, table);
  }
  if (cuda::has_rotation(heads_TMH)) {
    return cuda::norm_and_rotate_heads_backward_(grad_TMH, heads_TMH, query_heads, norm, table);
  }
  rotate_heads_back_(grad_TMH, table);
  const std::int64_t key_heads = heads_TMH.size(1) - query_heads;
  const std::int64_t head_dim = heads_TMH.size(2);
  const auto undo = [&](std::int64_t first, std::int64_t count, const at::Tensor& weight_H) {
    const at::Tensor grad = grad_TMH.narrow(1, first, count);
    const at::Tensor x_RH = heads_TMH.narrow(1, first, count).reshape({-1, head_dim});
    const at::Tensor rstd_R = rms_norm(x_RH, weight_H, norm.epsilon).rstd_R;
    const RmsNormGradient result =
        rms_norm_backward(grad.reshape({-1, head_dim}), x_RH, rstd_R, weight_H, {});
    grad.copy_(result.x_RD.view(grad.sizes()));
    return result.weight_D;
  };
  return {.q_H = undo(0, query_heads, norm.q_H), .k_H = undo(query_heads, key_heads, norm.k_H)};
}

}  // namespace isochron
