#pragma once

#include "isochron/engine/loss/softmax_rows.h"

// softmax_rows.h for fp32 logits on CUDA: one pass over them forward, one backward. Where the
// engine was built without nvcc, no tensor has a kernel.

namespace isochron::cuda {

[[nodiscard]] bool has_softmax(const at::Tensor& logits_CV);

[[nodiscard]] SoftmaxOutputs softmax_rows(const at::Tensor& logits_CV, const at::Tensor& labels_C,
                                          bool has_entropy);
[[nodiscard]] at::Tensor softmax_rows_backward(const at::Tensor& logits_CV,
                                               const SoftmaxGradients& rows, at::ScalarType dtype);

}  // namespace isochron::cuda
