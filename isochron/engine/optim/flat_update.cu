// Every pass reads and writes a number once; a thread takes eight at a time. Squares are summed in
// fp64 by a fixed number of blocks, and their sums by one block, so that the order is fixed.

#include "isochron/engine/cuda/eight.cuh"
#include "isochron/engine/optim/update_launches.h"

namespace isochron::cuda {

namespace {

constexpr int block_threads = 256;

__device__ std::int64_t first_of_thread() {
  return (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) * 8;
}

unsigned blocks_of(std::int64_t count) {
  return static_cast<unsigned>((count / 8 + block_threads - 1) / block_threads);
}

template <class T>
__global__ void accumulate_kernel(float* __restrict__ sum, const T* __restrict__ gradient,
                                  std::int64_t count, bool onto_zero) {
  const std::int64_t i = first_of_thread();
  if (i >= count) return;
  Eight total = {};
  if (!onto_zero) total = load(sum + i);
  const Eight more = load(gradient + i);
#pragma unroll
  for (int j = 0; j < 8; ++j) total.x[j] += more.x[j];
  store(sum + i, total);
}

__device__ double sum_of_block(double value) {
  __shared__ double warps[block_threads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (const double warp : warps) sum += warp;
  return sum;
}

__global__ void squares_kernel(double* __restrict__ partial, const float* __restrict__ values,
                               std::int64_t count) {
  double sum = 0;
#pragma unroll 2
  for (std::int64_t i = first_of_thread(); i < count;
       i += std::int64_t{num_square_partials} * block_threads * 8) {
    const Eight eight = load(values + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      sum += static_cast<double>(eight.x[j]) * static_cast<double>(eight.x[j]);
    }
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void add_partials_kernel(double* total, const double* __restrict__ partial) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < num_square_partials; i += block_threads) {
    sum += partial[i];
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *total += sum;
}

template <class T>
__global__ void adamw_kernel(AdamWPointers<T> in, AdamWCoefficients by, std::int64_t count) {
  const std::int64_t i = first_of_thread();
  if (i >= count) return;
  const Eight gradient = load(in.gradient + i);
  Eight exp_avg = load(in.exp_avg + i);
  Eight exp_avg_sq = load(in.exp_avg_sq + i);
  Eight master = load(in.master + i);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float g = gradient.x[j] * by.gradient_factor;
    exp_avg.x[j] = by.beta1 * exp_avg.x[j] + by.rest1 * g;
    exp_avg_sq.x[j] = by.beta2 * exp_avg_sq.x[j] + by.rest2 * g * g;
    const float denominator = sqrtf(exp_avg_sq.x[j]) * by.inverse_bias + by.epsilon;
    master.x[j] = master.x[j] * by.decay - by.step_size * exp_avg.x[j] / denominator;
  }
  store(in.exp_avg + i, exp_avg);
  store(in.exp_avg_sq + i, exp_avg_sq);
  store(in.master + i, master);
  if (static_cast<void*>(in.weights) != in.master) store(in.weights + i, master);
}

}  // namespace

template <class T>
void launch_accumulate(float* sum, const T* gradient, std::int64_t count, bool onto_zero,
                       cudaStream_t stream) {
  if (count == 0) return;
  accumulate_kernel<<<blocks_of(count), block_threads, 0, stream>>>(sum, gradient, count,
                                                                    onto_zero);
}

void launch_add_squares(double* total, double* partial, const float* values, std::int64_t count,
                        cudaStream_t stream) {
  squares_kernel<<<num_square_partials, block_threads, 0, stream>>>(partial, values, count);
  add_partials_kernel<<<1, block_threads, 0, stream>>>(total, partial);
}

template <class T>
void launch_adamw(const AdamWPointers<T>& in, const AdamWCoefficients& by, std::int64_t count,
                  cudaStream_t stream) {
  if (count == 0) return;
  adamw_kernel<<<blocks_of(count), block_threads, 0, stream>>>(in, by, count);
}

#define ISOCHRON_INSTANTIATE(T)                                                                  \
  template void launch_accumulate<T>(float*, const T*, std::int64_t, bool, cudaStream_t);        \
  template void launch_adamw<T>(const AdamWPointers<T>&, const AdamWCoefficients&, std::int64_t, \
                                cudaStream_t);
ISOCHRON_INSTANTIATE(float)
ISOCHRON_INSTANTIATE(__nv_bfloat16)
ISOCHRON_INSTANTIATE(__half)
#undef ISOCHRON_INSTANTIATE

}  // namespace isochron::cuda
