#include "isochron/engine/model/swiglu.h"

#include <ATen/ATen.h>

#include "isochron/engine/model/cpu_kernels.h"
#include "isochron/engine/model/cuda_kernels.h"

namespace isochron {

at::Tensor swiglu_TF(const at::Tensor& gate_up_T2F) {
  if (cpu::has_kernels(gate_up_T2F)) return cpu::swiglu_TF(gate_up_T2F);
  if (cuda::has_swiglu(gate_up_T2F)) return cuda::swiglu_TF(gate_up_T2F);
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  return at::silu(gate_up_T2F.narrow(1, 0, width)).mul_(gate_up_T2F.narrow(1, width, width));
}

at::Tensor swiglu_backward_T2F(const at::Tensor& grad_TF, const at::Tensor& gate_up_T2F) {
  if (cpu::has_kernels(gate_up_T2F)) return cpu::swiglu_backward_T2F(grad_TF, gate_up_T2F);
  if (cuda::has_swiglu(gate_up_T2F)) return cuda::swiglu_backward_T2F(grad_TF, gate_up_T2F);
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  const at::Tensor gate = gate_up_T2F.narrow(1, 0, width);
  const at::Tensor up = gate_up_T2F.narrow(1, width, width);
  at::Tensor out_T2F = at::empty_like(gate_up_T2F);
  at::Tensor grad_gate = out_T2F.narrow(1, 0, width);
  at::Tensor grad_up = out_T2F.narrow(1, width, width);
  at::mul_out(grad_up, grad_TF, at::silu(gate));
  at::silu_backward_out(grad_gate, grad_TF * up, gate);
  return out_T2F;
}

}  // namespace isochron
