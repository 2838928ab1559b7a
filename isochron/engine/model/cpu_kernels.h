#pragma once

#include <ATen/core/Tensor.h>

#include "isochron/engine/model/rms_norm.h"
#include "isochron/engine/model/rotary.h"

// Element-wise parts of a layer on the CPU in fp32 and fp64, each in one pass over memory where
// torch's operations take several. What they compute is said beside their callers. R rows, D
// columns, T packed tokens, M heads, H head dim, F width of the MLP.

namespace isochron::cpu {

// Whether a kernel takes tensors of this device and dtype.
[[nodiscard]] bool has_kernels(const at::Tensor& tensor);

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
void swiglu_backward_(const at::Tensor& gate_up_T2F, const at::Tensor& grad_TF);

// An input mask (dropout.h); `out` may be x. Both are contiguous.
void drop(const at::Tensor& x_TD, const at::Tensor& out_TD, const at::Tensor& streams_T,
          std::uint64_t index, std::int32_t limit, double scale);

}  // namespace isochron::cpu
