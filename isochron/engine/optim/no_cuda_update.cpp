// Without nvcc or CUDA nothing has a kernel: the optimizer runs on torch's operations.

#include "isochron/engine/cuda/no_kernels.h"
#include "isochron/engine/optim/cuda_update.h"

namespace isochron::cuda {

bool has_update(const at::Tensor&, const at::Tensor&) { return false; }

void accumulate_(const at::Tensor&, const at::Tensor&, Onto) { reject_no_kernels(); }
void add_squares_(const at::Tensor&, const at::Tensor&) { reject_no_kernels(); }
void adamw_(const AdamWMemory&, const AdamWStep&) { reject_no_kernels(); }

}  // namespace isochron::cuda
