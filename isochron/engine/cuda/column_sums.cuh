#pragma once

// The second stage of a weight's gradient: blocks leave partial sums as rows of fp32, and this adds
// up each column in one fixed order. Atomics would add in the order in which blocks end.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace isochron::cuda {

constexpr int column_sum_lines = 32;

template <class T>
__global__ void column_sums_kernel(const float* __restrict__ partial, T* __restrict__ sums,
                                   int rows, int width) {
  __shared__ float scratch[column_sum_lines][33];
  const int column = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x);
  const int line = static_cast<int>(threadIdx.y);
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (int row = line; row < rows; row += column_sum_lines) {
      sum += partial[static_cast<std::int64_t>(row) * width + column];
    }
  }
  scratch[line][threadIdx.x] = sum;
  __syncthreads();
  if (line != 0 || column >= width) return;
  sum = 0;
  for (int i = 0; i < column_sum_lines; ++i) sum += scratch[i][threadIdx.x];
  sums[column] = static_cast<T>(sum);
}

// sums[c] = sum over r of partial[r][c].
template <class T>
void column_sums(const float* partial, T* sums, int rows, int width, cudaStream_t stream) {
  column_sums_kernel<<<(width + 31) / 32, dim3(32, column_sum_lines), 0, stream>>>(partial, sums,
                                                                                   rows, width);
}

}  // namespace isochron::cuda
