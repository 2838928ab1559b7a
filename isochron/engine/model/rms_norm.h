#pragma once

#include <ATen/core/Tensor.h>

// R rows, D columns.

namespace isochron {

// y = x * rstd * weight with rstd = 1/sqrt(mean(x^2) + epsilon) of each row.
struct RmsNormOutput {
  at::Tensor y_RD;
  at::Tensor rstd_R;  // fp32, fp64 for fp64
};
[[nodiscard]] RmsNormOutput rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D,
                                     double epsilon);

// y again, bit by bit, from x and rstd.
[[nodiscard]] at::Tensor rms_norm_again(const at::Tensor& x_RD, const at::Tensor& rstd_R,
                                        const at::Tensor& weight_D);

struct RmsNormGradient {
  at::Tensor x_RD;  // with `residual_RD`, if defined, added
  at::Tensor weight_D;
};
[[nodiscard]] RmsNormGradient rms_norm_backward(const at::Tensor& grad_RD, const at::Tensor& x_RD,
                                                const at::Tensor& rstd_R,
                                                const at::Tensor& weight_D,
                                                const at::Tensor& residual_RD);

// y alone, as a node of autograd that keeps x and rstd.
[[nodiscard]] at::Tensor differentiable_rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D,
                                                 double epsilon);

}  // namespace isochron
