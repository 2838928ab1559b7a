#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "isochron/engine/model/dropout.h"

// T packed tokens, E outputs, D inputs.

namespace isochron {

// A matrix product with one or more named weights, which lie one behind the other in memory so that
// a single product takes them all: y = W mask(x) + b. Gradients are computed by hand (see layer.h).
struct Linear {
  std::vector<at::Tensor> weights;  // the parameters: rows x D each
  std::vector<at::Tensor> biases;   // of each weight; none: empty

  [[nodiscard]] at::Tensor forward(const at::Tensor& x_TD, const InputMask& mask) const;
  // forward(x) + residual, in one pass.
  [[nodiscard]] at::Tensor forward_add(const at::Tensor& x_TD, const InputMask& mask,
                                       const at::Tensor& residual_TE) const;
  [[nodiscard]] at::Tensor grad_input_TD(const at::Tensor& grad_TE, const InputMask& mask) const;
  // Appends the gradient of each named weight, then of each of their biases.
  void add_gradients(const at::Tensor& grad_TE, const at::Tensor& x_TD, const InputMask& mask,
                     std::vector<at::Tensor>& gradients) const;

 private:
  [[nodiscard]] at::Tensor weight_ED() const;
  [[nodiscard]] at::Tensor bias_E() const;
  [[nodiscard]] std::vector<std::int64_t> rows() const;  // of each weight
};

}  // namespace isochron
