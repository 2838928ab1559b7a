// A thread takes eight gates and the eight numbers they gate: read once, written once.

#include <algorithm>

#include "isochron/engine/cuda/eight.cuh"
#include "isochron/engine/model/layer_launches.h"

namespace isochron::cuda {

namespace {

__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// A block per token and stretch of columns.
struct Grid {
  dim3 blocks;
  unsigned threads;

  Grid(std::int64_t tokens, std::int64_t width) {
    const auto needed = static_cast<unsigned>((width / 8 + 31) / 32 * 32);
    threads = std::min(needed, 512u);
    blocks = dim3(static_cast<unsigned>(tokens), (needed + threads - 1) / threads);
  }
};

__device__ std::int64_t column_of_thread() {
  return (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * 8;
}

template <class T>
__global__ void swiglu_kernel(const T* __restrict__ gate_up, T* __restrict__ out,
                              std::int64_t width) {
  const std::int64_t column = column_of_thread();
  if (column >= width) return;
  const std::int64_t token = blockIdx.x;
  const T* row = gate_up + token * 2 * width + column;
  const Eight gate = load(row);
  Eight up = load(row + width);
#pragma unroll
  for (int i = 0; i < 8; ++i) up.x[i] *= gate.x[i] * sigmoid(gate.x[i]);
  store(out + token * width + column, up);
}

template <class T>
__global__ void swiglu_backward_kernel(const T* __restrict__ grad, const T* __restrict__ gate_up,
                                       T* __restrict__ out, std::int64_t width) {
  const std::int64_t column = column_of_thread();
  if (column >= width) return;
  const std::int64_t token = blockIdx.x;
  const T* row = gate_up + token * 2 * width + column;
  const Eight g = load(grad + token * width + column);
  const Eight gate = load(row);
  const Eight up = load(row + width);
  Eight grad_gate;
  Eight grad_up;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float s = sigmoid(gate.x[i]);
    const float silu = gate.x[i] * s;
    grad_up.x[i] = g.x[i] * silu;
    grad_gate.x[i] = g.x[i] * up.x[i] * (s + silu * (1.0f - s));
  }
  T* out_row = out + token * 2 * width + column;
  store(out_row, grad_gate);
  store(out_row + width, grad_up);
}

}  // namespace

template <class T>
void launch_swiglu(const T* gate_up_T2F, T* out_TF, std::int64_t tokens, std::int64_t width,
                   cudaStream_t stream) {
  if (tokens == 0) return;
  const Grid grid(tokens, width);
  swiglu_kernel<<<grid.blocks, grid.threads, 0, stream>>>(gate_up_T2F, out_TF, width);
}

template <class T>
void launch_swiglu_backward(const T* grad_TF, const T* gate_up_T2F, T* out_T2F, std::int64_t tokens,
                            std::int64_t width, cudaStream_t stream) {
  if (tokens == 0) return;
  const Grid grid(tokens, width);
  swiglu_backward_kernel<<<grid.blocks, grid.threads, 0, stream>>>(grad_TF, gate_up_T2F, out_T2F,
                                                                   width);
}

#define ISOCHRON_INSTANTIATE(T)                                                               \
  template void launch_swiglu<T>(const T*, T*, std::int64_t, std::int64_t, cudaStream_t);     \
  template void launch_swiglu_backward<T>(const T*, const T*, T*, std::int64_t, std::int64_t, \
                                          cudaStream_t);
ISOCHRON_INSTANTIATE(float)
ISOCHRON_INSTANTIATE(__nv_bfloat16)
ISOCHRON_INSTANTIATE(__half)
#undef ISOCHRON_INSTANTIATE

}  // namespace isochron::cuda
