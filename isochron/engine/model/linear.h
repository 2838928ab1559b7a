#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// T packed tokens, E outputs, D inputs.

namespace isochron {

// A matrix product with one or more named weights, which lie one behind the other in one tensor so
// that a single product takes them all. These are not the parameters themselves, but share their
// memory: gradients are computed by hand (see layer.h).
struct Linear {
  at::Tensor weight_ED;
  at::Tensor bias_E;                // undefined: none
  std::vector<std::int64_t> parts;  // rows of each named weight; their sum is E

  [[nodiscard]] at::Tensor forward(const at::Tensor& x_TD) const;
  // forward(x) + residual, in one pass.
  [[nodiscard]] at::Tensor forward_add(const at::Tensor& x_TD, const at::Tensor& residual_TE) const;
  [[nodiscard]] at::Tensor grad_input_TD(const at::Tensor& grad_TE) const;
  // Appends the gradient of each named weight, then of each of their biases.
  void add_gradients(const at::Tensor& grad_TE, const at::Tensor& x_TD,
                     std::vector<at::Tensor>& gradients) const;
};

}  // namespace isochron
