#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <utility>

// From tensors to kernels over plain memory.

namespace isochron::cuda {

// Whether kernels can read the tensor in 16-byte accesses: on CUDA, in a dtype that they have, with
// contiguous last dims of whole eights and everything before them a multiple of eight apart.
[[nodiscard]] inline bool is_vectorized(const at::Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  if (!tensor.is_cuda() || tensor.dim() == 0 ||
      (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf)) {
    return false;
  }
  const auto last = tensor.dim() - 1;
  if (tensor.stride(last) != 1 || tensor.size(last) % 8 != 0) return false;
  for (std::int64_t dim = 0; dim < last; ++dim) {
    if (tensor.stride(dim) % 8 != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

template <class T>
[[nodiscard]] const T* read(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr()) : nullptr;
}
template <class T>
[[nodiscard]] T* write(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

// Calls launch(T{}, stream) with the kernels' type for the dtype of `like`, on its device and
// current stream.
template <class Launch>
void launch_like(const at::Tensor& like, const Launch& launch) {
  const c10::DeviceGuard guard(like.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(like.device().index()).stream();
  switch (like.scalar_type()) {
    case at::kBFloat16:
      launch(__nv_bfloat16{}, stream);
      break;
    case at::kHalf:
      launch(__half{}, stream);
      break;
    default:
      launch(float{}, stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace isochron::cuda
