#include "isochron/engine/model/linear.h"

#include <ATen/ATen.h>

#include "isochron/core/require.h"

namespace isochron {

namespace {

// All parts as one tensor over their memory. Asked for each time, since an optimizer may have moved
// them.
at::Tensor joined(const std::vector<at::Tensor>& parts) {
  const at::Tensor first = parts.front().detach();
  if (parts.size() == 1) return first;
  std::vector<std::int64_t> sizes = first.sizes().vec();
  const auto* end = static_cast<const char*>(first.const_data_ptr());
  sizes[0] = 0;
  for (const at::Tensor& part : parts) {
    ISOCHRON_ASSERT(part.const_data_ptr() == end);
    end += part.nbytes();
    sizes[0] += part.size(0);
  }
  return first.as_strided(sizes, first.strides());
}

}  // namespace

at::Tensor Linear::weight_ED() const { return joined(weights); }
at::Tensor Linear::bias_E() const { return joined(biases); }

std::vector<std::int64_t> Linear::rows() const {
  std::vector<std::int64_t> rows;
  for (const at::Tensor& weight : weights) rows.push_back(weight.size(0));
  return rows;
}

at::Tensor Linear::forward(const at::Tensor& x_TD, const InputMask& mask) const {
  const at::Tensor masked_TD = mask.apply(x_TD);
  return biases.empty() ? at::mm(masked_TD, weight_ED().t())
                        : at::addmm(bias_E(), masked_TD, weight_ED().t());
}

at::Tensor Linear::forward_add(const at::Tensor& x_TD, const InputMask& mask,
                               const at::Tensor& residual_TE) const {
  at::Tensor y_TE = at::addmm(residual_TE, mask.apply(x_TD), weight_ED().t());
  return biases.empty() ? y_TE : y_TE.add_(bias_E());
}

at::Tensor Linear::grad_input_TD(const at::Tensor& grad_TE, const InputMask& mask) const {
  at::Tensor grad_TD = at::mm(grad_TE, weight_ED());
  mask.apply_(grad_TD);
  return grad_TD;
}

void Linear::add_gradients(const at::Tensor& grad_TE, const at::Tensor& x_TD, const InputMask& mask,
                           std::vector<at::Tensor>& gradients) const {
  for (at::Tensor& part : at::mm(grad_TE.t(), mask.apply(x_TD)).split_with_sizes(rows())) {
    gradients.push_back(std::move(part));
  }
  if (biases.empty()) return;
  for (at::Tensor& part : grad_TE.sum(0).split_with_sizes(rows())) {
    gradients.push_back(std::move(part));
  }
}

}  // namespace isochron
