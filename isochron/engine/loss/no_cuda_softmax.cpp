// Without nvcc or CUDA no tensor has a kernel: the head runs on torch's operations.

#include "isochron/engine/cuda/no_kernels.h"
#include "isochron/engine/loss/cuda_softmax.h"

namespace isochron::cuda {

bool has_softmax(const at::Tensor&) { return false; }

SoftmaxOutputs softmax_rows(const at::Tensor&, const at::Tensor&, bool) { reject_no_kernels(); }
at::Tensor softmax_rows_backward(const at::Tensor&, const SoftmaxGradients&, at::ScalarType) {
  reject_no_kernels();
}

}  // namespace isochron::cuda
