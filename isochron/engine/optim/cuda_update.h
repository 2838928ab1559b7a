#pragma once

#include "isochron/engine/optim/flat_update.h"

// flat_update.h on CUDA, each in one pass over memory. Where the engine was built without nvcc,
// nothing has a kernel.

namespace isochron::cuda {

// Whether there are kernels for this fp32 memory and `other`, equally long, in fp32, bf16 or fp16.
[[nodiscard]] bool has_update(const at::Tensor& values, const at::Tensor& other);

void accumulate_(const at::Tensor& sum, const at::Tensor& gradient, Onto onto);
void add_squares_(const at::Tensor& total, const at::Tensor& values);
void adamw_(const AdamWMemory& memory, const AdamWStep& step);

}  // namespace isochron::cuda
