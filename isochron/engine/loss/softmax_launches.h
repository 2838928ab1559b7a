#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// The kernels of cuda_softmax.h over plain memory. Results are equal bit by bit from launch to
// launch.

namespace isochron::cuda {

struct LogitRows {
  const float* logits_CV;
  const std::int64_t* labels_C;
  std::int64_t rows, vocabulary;
};

struct SoftmaxResults {
  float* lse_C;
  float* log_prob_C;
  float* entropy_C;  // or null
};
void launch_softmax(const LogitRows& in, const SoftmaxResults& out, cudaStream_t stream);

struct SoftmaxSlopes {
  const float* lse_C;
  const float* grad_log_prob_C;  // or null: zero
  const float* entropy_C;        // with the next
  const float* grad_entropy_C;   // or null: zero
};
// For T = float, __nv_bfloat16 and __half. `grad_CV` may be the logits.
template <class T>
void launch_softmax_backward(const LogitRows& in, const SoftmaxSlopes& slopes, T* grad_CV,
                             cudaStream_t stream);

}  // namespace isochron::cuda
