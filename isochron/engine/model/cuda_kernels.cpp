#include "isochron/engine/model/cuda_kernels.h"

#include <ATen/ATen.h>

#include "isochron/engine/cuda/dispatch.h"
#include "isochron/engine/model/layer_launches.h"

namespace isochron::cuda {

namespace {

at::Tensor empty_floats(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().dtype(at::kFloat));
}

HeadShape shape_of(const at::Tensor& heads_TMH, std::int64_t query_heads) {
  return {.tokens = heads_TMH.size(0),
          .heads = heads_TMH.size(1),
          .query_heads = query_heads,
          .head_dim = heads_TMH.size(2)};
}

Angles angles_of(const RopeTable& table) {
  return {.cos = read<float>(table.cos_TR), .sin = read<float>(table.sin_TR)};
}

}  // namespace

bool has_norm(const at::Tensor& x_RD, const at::Tensor& weight_D) {
  return x_RD.dim() == 2 && x_RD.is_contiguous() && x_RD.size(1) <= max_norm_width &&
         is_vectorized(x_RD) && is_vectorized(weight_D) &&
         weight_D.scalar_type() == x_RD.scalar_type();
}

bool has_rotation(const at::Tensor& heads_TMH) {
  const std::int64_t head_dim = heads_TMH.size(2);
  return head_dim % 16 == 0 && head_dim <= max_head_dim && heads_TMH.stride(1) == head_dim &&
         is_vectorized(heads_TMH);
}

bool has_swiglu(const at::Tensor& gate_up_T2F) {
  return gate_up_T2F.size(1) % 16 == 0 && gate_up_T2F.is_contiguous() && is_vectorized(gate_up_T2F);
}

RmsNormOutput rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D, double epsilon) {
  const std::int64_t rows = x_RD.size(0);
  RmsNormOutput out = {.y_RD = at::empty_like(x_RD), .rstd_R = empty_floats({rows}, x_RD)};
  launch_like(x_RD, [&]<class T>(T, cudaStream_t stream) {
    launch_rms_norm<T>(read<T>(x_RD), read<T>(weight_D), write<T>(out.y_RD),
                       write<float>(out.rstd_R), rows, x_RD.size(1), static_cast<float>(epsilon),
                       stream);
  });
  return out;
}

at::Tensor rms_norm_again(const at::Tensor& x_RD, const at::Tensor& rstd_R,
                          const at::Tensor& weight_D) {
  at::Tensor y_RD = at::empty_like(x_RD);
  launch_like(x_RD, [&]<class T>(T, cudaStream_t stream) {
    launch_rms_norm_again<T>(read<T>(x_RD), read<float>(rstd_R), read<T>(weight_D), write<T>(y_RD),
                             x_RD.size(0), x_RD.size(1), stream);
  });
  return y_RD;
}

RmsNormGradient rms_norm_backward(const at::Tensor& grad_RD, const at::Tensor& x_RD,
                                  const at::Tensor& rstd_R, const at::Tensor& weight_D,
                                  const at::Tensor& residual_RD) {
  const std::int64_t rows = x_RD.size(0);
  const std::int64_t width = x_RD.size(1);
  const at::Tensor partial = empty_floats({num_norm_partials(rows), width}, x_RD);
  RmsNormGradient out = {.x_RD = at::empty_like(x_RD),
                         .weight_D = at::empty({width}, x_RD.options())};
  launch_like(x_RD, [&]<class T>(T, cudaStream_t stream) {
    launch_rms_norm_backward<T>({.grad_RD = read<T>(grad_RD),
                                 .x_RD = read<T>(x_RD),
                                 .rstd_R = read<float>(rstd_R),
                                 .weight_D = read<T>(weight_D),
                                 .residual_RD = read<T>(residual_RD),
                                 .grad_x_RD = write<T>(out.x_RD),
                                 .partial = write<float>(partial),
                                 .grad_weight_D = write<T>(out.weight_D)},
                                rows, width, stream);
  });
  return out;
}

void rotate_heads_(const at::Tensor& heads_TMH, const RopeTable& table, Turn turn) {
  launch_like(heads_TMH, [&]<class T>(T, cudaStream_t stream) {
    launch_rotate_heads<T>(write<T>(heads_TMH), heads_TMH.stride(0), shape_of(heads_TMH, 0),
                           angles_of(table), turn == Turn::back, stream);
  });
}

at::Tensor norm_and_rotate_heads(const at::Tensor& heads_TMH, std::int64_t query_heads,
                                 const HeadNorm& norm, const RopeTable& table) {
  at::Tensor out_TMH = at::empty(heads_TMH.sizes(), heads_TMH.options());
  launch_like(heads_TMH, [&]<class T>(T, cudaStream_t stream) {
    launch_norm_and_rotate<T>(read<T>(heads_TMH), heads_TMH.stride(0), write<T>(out_TMH),
                              shape_of(heads_TMH, query_heads), read<T>(norm.q_H),
                              read<T>(norm.k_H), static_cast<float>(norm.epsilon), angles_of(table),
                              stream);
  });
  return out_TMH;
}

HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor& grad_TMH,
                                                 const at::Tensor& heads_TMH,
                                                 std::int64_t query_heads, const HeadNorm& norm,
                                                 const RopeTable& table) {
  const HeadShape shape = shape_of(heads_TMH, query_heads);
  const at::Tensor partial =
      empty_floats({num_head_partials(shape.tokens), 2 * shape.head_dim}, heads_TMH);
  const at::Tensor weights_2H = at::empty({2, shape.head_dim}, heads_TMH.options());
  launch_like(heads_TMH, [&]<class T>(T, cudaStream_t stream) {
    launch_norm_and_rotate_backward<T>({.grad_TMH = write<T>(grad_TMH),
                                        .grad_stride = grad_TMH.stride(0),
                                        .heads_TMH = read<T>(heads_TMH),
                                        .stride = heads_TMH.stride(0),
                                        .q_H = read<T>(norm.q_H),
                                        .k_H = read<T>(norm.k_H),
                                        .partial = write<float>(partial),
                                        .grad_weights_2H = write<T>(weights_2H)},
                                       shape, static_cast<float>(norm.epsilon), angles_of(table),
                                       stream);
  });
  return {.q_H = weights_2H.select(0, 0), .k_H = weights_2H.select(0, 1)};
}

at::Tensor swiglu_TF(const at::Tensor& gate_up_T2F) {
  const std::int64_t tokens = gate_up_T2F.size(0);
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  at::Tensor out_TF = at::empty({tokens, width}, gate_up_T2F.options());
  launch_like(gate_up_T2F, [&]<class T>(T, cudaStream_t stream) {
    launch_swiglu<T>(read<T>(gate_up_T2F), write<T>(out_TF), tokens, width, stream);
  });
  return out_TF;
}

at::Tensor swiglu_backward_T2F(const at::Tensor& grad_TF, const at::Tensor& gate_up_T2F) {
  at::Tensor out_T2F = at::empty_like(gate_up_T2F);
  launch_like(gate_up_T2F, [&]<class T>(T, cudaStream_t stream) {
    launch_swiglu_backward<T>(read<T>(grad_TF), read<T>(gate_up_T2F), write<T>(out_T2F),
                              gate_up_T2F.size(0), gate_up_T2F.size(1) / 2, stream);
  });
  return out_T2F;
}

}  // namespace isochron::cuda
