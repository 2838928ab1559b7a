#pragma once

#include <ATen/core/Tensor.h>

// T packed tokens, F width of the MLP. Gate and up lie side by side: T x 2F.

namespace isochron {

// silu(gate) * up.
[[nodiscard]] at::Tensor swiglu_TF(const at::Tensor& gate_up_T2F);

// Puts the gradients of gate and up in their place.
void swiglu_backward_(const at::Tensor& gate_up_T2F, const at::Tensor& grad_TF);

}  // namespace isochron
