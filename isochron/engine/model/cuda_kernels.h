#pragma once

#include <ATen/core/Tensor.h>

#include "isochron/engine/model/rms_norm.h"
#include "isochron/engine/model/rotary.h"

// Element-wise parts of a layer on CUDA in fp32, bf16 and fp16, each in one pass over memory and
// with fp32 arithmetic, rounded once. What they compute is said beside their callers. R rows, D
// columns, T packed tokens, M heads, H head dim, F width of the MLP.
//
// Where the engine was built without nvcc, no tensor has a kernel.

namespace isochron::cuda {

// Whether there is a kernel for tensors of this device, dtype, shape and alignment.
[[nodiscard]] bool has_norm(const at::Tensor& x_RD, const at::Tensor& weight_D);
[[nodiscard]] bool has_rotation(const at::Tensor& heads_TMH);
[[nodiscard]] bool has_swiglu(const at::Tensor& gate_up_T2F);

[[nodiscard]] RmsNormOutput rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D,
                                     double epsilon);
[[nodiscard]] at::Tensor rms_norm_again(const at::Tensor& x_RD, const at::Tensor& rstd_R,
                                        const at::Tensor& weight_D);
[[nodiscard]] RmsNormGradient rms_norm_backward(const at::Tensor& grad_RD, const at::Tensor& x_RD,
                                                const at::Tensor& rstd_R,
                                                const at::Tensor& weight_D,
                                                const at::Tensor& residual_RD);

void rotate_heads_(const at::Tensor& heads_TMH, const RopeTable& table, Turn turn);
[[nodiscard]] at::Tensor norm_and_rotate_heads(const at::Tensor& heads_TMH,
                                               std::int64_t query_heads, const HeadNorm& norm,
                                               const RopeTable& table);
[[nodiscard]] HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor& grad_TMH,
                                                               const at::Tensor& heads_TMH,
                                                               std::int64_t query_heads,
                                                               const HeadNorm& norm,
                                                               const RopeTable& table);

[[nodiscard]] at::Tensor swiglu_TF(const at::Tensor& gate_up_T2F);
[[nodiscard]] at::Tensor swiglu_backward_T2F(const at::Tensor& grad_TF,
                                             const at::Tensor& gate_up_T2F);

}  // namespace isochron::cuda
