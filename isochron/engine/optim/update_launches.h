#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// The kernels of cuda_update.h over plain memory: `count` is a multiple of 8, addresses of 16
// bytes. T is float, __nv_bfloat16 or __half. Results are equal bit by bit from launch to launch.

namespace isochron::cuda {

template <class T>
void launch_accumulate(float* sum, const T* gradient, std::int64_t count, bool onto_zero,
                       cudaStream_t stream);

// total += sum of squares. `partial` is num_square_partials doubles.
constexpr int num_square_partials = 1024;
void launch_add_squares(double* total, double* partial, const float* values, std::int64_t count,
                        cudaStream_t stream);

struct AdamWCoefficients {
  float gradient_factor, decay, beta1, rest1, beta2, rest2, step_size, inverse_bias, epsilon;
};
template <class T>
struct AdamWPointers {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  T* weights;  // the master itself: left alone
};
template <class T>
void launch_adamw(const AdamWPointers<T>& in, const AdamWCoefficients& by, std::int64_t count,
                  cudaStream_t stream);

}  // namespace isochron::cuda
