#include "isochron/engine/model/linear.h"

#include <ATen/ATen.h>

namespace isochron {

at::Tensor Linear::forward(const at::Tensor& x_TD) const {
  return bias_E.defined() ? at::addmm(bias_E, x_TD, weight_ED.t()) : at::mm(x_TD, weight_ED.t());
}

at::Tensor Linear::forward_add(const at::Tensor& x_TD, const at::Tensor& residual_TE) const {
  at::Tensor y_TE = at::addmm(residual_TE, x_TD, weight_ED.t());
  return bias_E.defined() ? y_TE.add_(bias_E) : y_TE;
}

at::Tensor Linear::grad_input_TD(const at::Tensor& grad_TE) const {
  return at::mm(grad_TE, weight_ED);
}

void Linear::add_gradients(const at::Tensor& grad_TE, const at::Tensor& x_TD,
                           std::vector<at::Tensor>& gradients) const {
  for (at::Tensor& part : at::mm(grad_TE.t(), x_TD).split_with_sizes(parts)) {
    gradients.push_back(std::move(part));
  }
  if (!bias_E.defined()) return;
  for (at::Tensor& part : grad_TE.sum(0).split_with_sizes(parts)) {
    gradients.push_back(std::move(part));
  }
}

}  // namespace isochron
