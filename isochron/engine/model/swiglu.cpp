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

void swiglu_backward_(const at::Tensor& gate_up_T2F, const at::Tensor& grad_TF) {
  if (cpu::has_kernels(gate_up_T2F)) return cpu::swiglu_backward_(gate_up_T2F, grad_TF);
  if (cuda::has_swiglu(gate_up_T2F)) return cuda::swiglu_backward_(gate_up_T2F, grad_TF);
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  at::Tensor gate = gate_up_T2F.narrow(1, 0, width);
  at::Tensor up = gate_up_T2F.narrow(1, width, width);
  const at::Tensor grad_silu = grad_TF * up;
  at::silu_out(up, gate).mul_(grad_TF);
  at::silu_backward_out(gate, grad_silu, gate);
}

}  // namespace isochron
