#include "isochron/engine/model/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>

#include "isochron/engine/model/cpu_kernels.h"
#include "isochron/engine/model/cuda_kernels.h"

namespace isochron {

namespace {

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

struct NormNode : torch::autograd::Function<NormNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x_RD,
                            const at::Tensor& weight_D, double epsilon) {
    RmsNormOutput output = rms_norm(x_RD, weight_D, epsilon);
    context->save_for_backward({x_RD, output.rstd_R, weight_D});
    return output.y_RD;
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          const std::vector<at::Tensor>& grads) {
    const auto saved = context->get_saved_variables();
    RmsNormGradient gradient =
        rms_norm_backward(grads[0].contiguous(), saved[0], saved[1], saved[2], {});
    return {std::move(gradient.x_RD), std::move(gradient.weight_D), {}};
  }
};

}  // namespace

RmsNormOutput rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D, double epsilon) {
  if (cpu::has_kernels(x_RD)) return cpu::rms_norm(x_RD, weight_D, epsilon);
  if (cuda::has_norm(x_RD, weight_D)) return cuda::rms_norm(x_RD, weight_D, epsilon);
  const at::Tensor rstd_R = wide(x_RD).square().mean(-1).add_(epsilon).rsqrt_();
  return {.y_RD = rms_norm_again(x_RD, rstd_R, weight_D), .rstd_R = rstd_R};
}

at::Tensor rms_norm_again(const at::Tensor& x_RD, const at::Tensor& rstd_R,
                          const at::Tensor& weight_D) {
  if (cpu::has_kernels(x_RD)) return cpu::rms_norm_again(x_RD, rstd_R, weight_D);
  if (cuda::has_norm(x_RD, weight_D)) return cuda::rms_norm_again(x_RD, rstd_R, weight_D);
  return (wide(x_RD) * rstd_R.unsqueeze(-1)).mul_(weight_D).to(x_RD.scalar_type());
}

RmsNormGradient rms_norm_backward(const at::Tensor& grad_RD, const at::Tensor& x_RD,
                                  const at::Tensor& rstd_R, const at::Tensor& weight_D,
                                  const at::Tensor& residual_RD) {
  if (cpu::has_kernels(x_RD)) {
    return cpu::rms_norm_backward(grad_RD, x_RD, rstd_R, weight_D, residual_RD);
  }
  if (cuda::has_norm(x_RD, weight_D)) {
    return cuda::rms_norm_backward(grad_RD, x_RD, rstd_R, weight_D, residual_RD);
  }
  const at::Tensor rstd_R1 = rstd_R.unsqueeze(-1);
  const at::Tensor normed_RD = wide(x_RD) * rstd_R1;
  const at::Tensor grad = wide(grad_RD);
  const at::Tensor scaled_RD = grad * weight_D;
  const at::Tensor along_R1 = (scaled_RD * normed_RD).mean(-1, /*keepdim=*/true);
  at::Tensor grad_x = (scaled_RD - normed_RD * along_R1).mul_(rstd_R1);
  if (residual_RD.defined()) grad_x.add_(residual_RD);
  return {.x_RD = grad_x.to(x_RD.scalar_type()),
          .weight_D = (grad * normed_RD).sum(0).to(weight_D.scalar_type())};
}

at::Tensor differentiable_rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D,
                                   double epsilon) {
  return NormNode::apply(x_RD, weight_D, epsilon);
}

}  // namespace isochron
