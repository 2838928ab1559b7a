#pragma once

#include <ATen/core/Tensor.h>

// C rows of logits, V vocabulary.

namespace isochron {

// Per row of logits, in their dtype.
struct SoftmaxOutputs {
  at::Tensor lse_C;       // log of the sum of exponentials
  at::Tensor log_prob_C;  // of the label
  at::Tensor entropy_C;   // undefined if it was not asked for
};

[[nodiscard]] SoftmaxOutputs softmax_rows(const at::Tensor& logits_CV, const at::Tensor& labels_C,
                                          bool has_entropy);

// What the gradient of a row takes beside its logits; an undefined gradient is zero.
struct SoftmaxGradients {
  at::Tensor labels_C, lse_C, entropy_C, grad_log_prob_C, grad_entropy_C;
};

// The gradient of the logits in `dtype`. May overwrite the logits with it.
[[nodiscard]] at::Tensor softmax_rows_backward(const at::Tensor& logits_CV,
                                               const SoftmaxGradients& rows, at::ScalarType dtype);

}  // namespace isochron
