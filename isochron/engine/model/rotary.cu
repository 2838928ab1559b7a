// A warp takes a token and its angles, `lanes` threads of it a head: each eight numbers of the
// first half and the eight of the second half that are turned with them, so that nothing but the
// sums of a norm crosses threads. The backward computes the norm again instead of reading its
// scale.

#include <algorithm>

#include "isochron/engine/cuda/column_sums.cuh"
#include "isochron/engine/cuda/eight.cuh"
#include "isochron/engine/model/layer_launches.h"

namespace isochron::cuda {

namespace {

constexpr int block_warps = 8;
constexpr std::int64_t max_partials = 512;

struct Pair {
  Eight first, second;
};

__device__ float squares_of(const Pair& x) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += x.first.x[i] * x.first.x[i] + x.second.x[i] * x.second.x[i];
  return sum;
}

__device__ Pair turned(const Pair& x, const Eight& cos, const Eight& sin) {
  Pair y;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    y.first.x[i] = x.first.x[i] * cos.x[i] - x.second.x[i] * sin.x[i];
    y.second.x[i] = x.second.x[i] * cos.x[i] + x.first.x[i] * sin.x[i];
  }
  return y;
}

__device__ Eight negated(const Eight& x) {
  Eight y;
#pragma unroll
  for (int i = 0; i < 8; ++i) y.x[i] = -x.x[i];
  return y;
}

template <class T>
__device__ Pair load_pair(const T* head, int half) {
  return {load(head), load(head + half)};
}

template <class T>
__device__ void store_pair(T* head, int half, const Pair& pair) {
  store(head, pair.first);
  store(head + half, pair.second);
}

// Which part of which heads of a token a thread has: heads first, first + step, ..
template <int lanes>
struct Part {
  static constexpr int step = 32 / lanes;
  int first = static_cast<int>(threadIdx.x % 32) / lanes;
  int column = static_cast<int>(threadIdx.x) % lanes * 8;
};

__device__ std::int64_t first_token() {
  return static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32;
}

template <class T, int lanes>
__global__ void rotate_kernel(T* heads, std::int64_t stride, HeadShape shape, Angles angles,
                              bool backwards) {
  const Part<lanes> part;
  const int half = static_cast<int>(shape.head_dim / 2);
  const std::int64_t token = first_token();
  if (token >= shape.tokens || part.column >= half) return;
  const Eight cos = load(angles.cos + token * half + part.column);
  Eight sin = load(angles.sin + token * half + part.column);
  if (backwards) sin = negated(sin);
  for (int head = part.first; head < shape.heads; head += part.step) {
    T* data = heads + token * stride + head * shape.head_dim + part.column;
    store_pair(data, half, turned(load_pair(data, half), cos, sin));
  }
}

template <class T, int lanes>
__global__ void norm_and_rotate_kernel(const T* __restrict__ heads, std::int64_t stride,
                                       T* __restrict__ out, HeadShape shape,
                                       const T* __restrict__ q_weight,
                                       const T* __restrict__ k_weight, float epsilon,
                                       Angles angles) {
  const Part<lanes> part;
  const int half = static_cast<int>(shape.head_dim / 2);
  const std::int64_t token = first_token();
  if (token >= shape.tokens) return;  // a whole warp
  const bool has_columns = part.column < half;
  Eight cos = {};
  Eight sin = {};
  if (has_columns) {
    cos = load(angles.cos + token * half + part.column);
    sin = load(angles.sin + token * half + part.column);
  }
#pragma unroll 2
  for (int base = 0; base < shape.heads; base += part.step) {
    const int head = base + part.first;
    const bool is_inside = has_columns && head < shape.heads;
    Pair x = {};
    if (is_inside) {
      x = load_pair(heads + token * stride + head * shape.head_dim + part.column, half);
    }
    const float squares = sum_of_lanes<lanes>(squares_of(x));
    if (!is_inside) continue;
    const float rstd = 1.0f / sqrtf(squares / static_cast<float>(shape.head_dim) + epsilon);
    const Pair weight =
        load_pair((head < shape.query_heads ? q_weight : k_weight) + part.column, half);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x.first.x[i] *= rstd * weight.first.x[i];
      x.second.x[i] *= rstd * weight.second.x[i];
    }
    store_pair(out + (token * shape.heads + head) * shape.head_dim + part.column, half,
               turned(x, cos, sin));
  }
}

// The sums of a weight's gradient over the heads of a warp, then over the warps of the block.
template <int lanes>
__device__ void add_up_heads(Pair& sum) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int distance = lanes; distance < 32; distance *= 2) {
      sum.first.x[i] += __shfl_xor_sync(0xffffffffu, sum.first.x[i], distance);
      sum.second.x[i] += __shfl_xor_sync(0xffffffffu, sum.second.x[i], distance);
    }
  }
}

template <class T, int lanes>
__global__ void __launch_bounds__(block_warps * 32, 2)
    norm_and_rotate_backward_kernel(HeadNormBackward<T> in, HeadShape shape, float epsilon,
                                    Angles angles) {
  extern __shared__ float scratch[];  // warps x 2 x head dim
  const Part<lanes> part;
  const int half = static_cast<int>(shape.head_dim / 2);
  const bool has_columns = part.column < half;
  const float inverse_dim = 1.0f / static_cast<float>(shape.head_dim);
  Pair q_sum = {};
  Pair k_sum = {};
  for (std::int64_t token = first_token(); token < shape.tokens;
       token += static_cast<std::int64_t>(gridDim.x) * block_warps) {
    Eight cos = {};
    Eight sin = {};
    if (has_columns) {
      cos = load(angles.cos + token * half + part.column);
      sin = negated(load(angles.sin + token * half + part.column));
    }
    for (int base = 0; base < shape.heads; base += part.step) {
      const int head = base + part.first;
      const bool is_query = head < shape.query_heads;
      const bool is_inside = has_columns && head < shape.heads;
      T* data = in.grad_TMH + token * in.grad_stride + head * shape.head_dim + part.column;
      Pair grad = {};
      Pair x = {};
      Pair weight = {};
      if (is_inside) {
        grad = load_pair(static_cast<const T*>(data), half);
        x = load_pair(in.heads_TMH + token * in.stride + head * shape.head_dim + part.column, half);
        weight = load_pair((is_query ? in.q_H : in.k_H) + part.column, half);
      }
      grad = turned(grad, cos, sin);
      float along = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        along += grad.first.x[i] * weight.first.x[i] * x.first.x[i] +
                 grad.second.x[i] * weight.second.x[i] * x.second.x[i];
      }
      const float squares = sum_of_lanes<lanes>(squares_of(x));
      along = sum_of_lanes<lanes>(along);
      const float rstd = 1.0f / sqrtf(squares * inverse_dim + epsilon);
      along *= rstd * rstd * inverse_dim;
      const float q_scale = is_query ? rstd : 0.0f;
      const float k_scale = is_query ? 0.0f : rstd;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float first = grad.first.x[i] * x.first.x[i];
        const float second = grad.second.x[i] * x.second.x[i];
        q_sum.first.x[i] += first * q_scale;
        q_sum.second.x[i] += second * q_scale;
        k_sum.first.x[i] += first * k_scale;
        k_sum.second.x[i] += second * k_scale;
        grad.first.x[i] = rstd * (grad.first.x[i] * weight.first.x[i] - along * x.first.x[i]);
        grad.second.x[i] = rstd * (grad.second.x[i] * weight.second.x[i] - along * x.second.x[i]);
      }
      if (is_inside) store_pair(data, half, grad);
    }
  }
  add_up_heads<lanes>(q_sum);
  add_up_heads<lanes>(k_sum);
  const int width = 2 * static_cast<int>(shape.head_dim);
  if (part.first == 0 && has_columns) {
    float* own = scratch + threadIdx.x / 32 * width + part.column;
    store_pair(own, half, q_sum);
    store_pair(own + shape.head_dim, half, k_sum);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < width; i += block_warps * 32) {
    float sum = 0;
    for (int warp = 0; warp < block_warps; ++warp) sum += scratch[warp * width + i];
    in.partial[static_cast<std::int64_t>(blockIdx.x) * width + i] = sum;
  }
}

// Calls launch(std::integral_constant<int, lanes>) with the threads that a head takes: eight
// columns of each half, to a power of two.
template <class Launch>
void with_lanes(std::int64_t head_dim, const Launch& launch) {
  const std::int64_t needed = (head_dim / 2 + 7) / 8;
  if (needed <= 1) return launch(std::integral_constant<int, 1>());
  if (needed <= 2) return launch(std::integral_constant<int, 2>());
  if (needed <= 4) return launch(std::integral_constant<int, 4>());
  if (needed <= 8) return launch(std::integral_constant<int, 8>());
  if (needed <= 16) return launch(std::integral_constant<int, 16>());
  return launch(std::integral_constant<int, 32>());
}

unsigned blocks_of(std::int64_t tokens) {
  return static_cast<unsigned>((tokens + block_warps - 1) / block_warps);
}

}  // namespace

std::int64_t num_head_partials(std::int64_t tokens) {
  return std::min<std::int64_t>(blocks_of(tokens), max_partials);
}

template <class T>
void launch_rotate_heads(T* heads_TMH, std::int64_t stride, const HeadShape& shape,
                         const Angles& angles, bool backwards, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  with_lanes(shape.head_dim, [&](auto lanes) {
    rotate_kernel<T, lanes()><<<blocks_of(shape.tokens), block_warps * 32, 0, stream>>>(
        heads_TMH, stride, shape, angles, backwards);
  });
}

template <class T>
void launch_norm_and_rotate(const T* heads_TMH, std::int64_t stride, T* out_TMH,
                            const HeadShape& shape, const T* q_H, const T* k_H, float epsilon,
                            const Angles& angles, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  with_lanes(shape.head_dim, [&](auto lanes) {
    norm_and_rotate_kernel<T, lanes()><<<blocks_of(shape.tokens), block_warps * 32, 0, stream>>>(
        heads_TMH, stride, out_TMH, shape, q_H, k_H, epsilon, angles);
  });
}

template <class T>
void launch_norm_and_rotate_backward(const HeadNormBackward<T>& in, const HeadShape& shape,
                                     float epsilon, const Angles& angles, cudaStream_t stream) {
  const std::int64_t blocks = num_head_partials(shape.tokens);
  const std::int64_t width = 2 * shape.head_dim;
  if (blocks > 0) {
    const auto bytes = static_cast<std::size_t>(block_warps * width) * sizeof(float);
    with_lanes(shape.head_dim, [&](auto lanes) {
      norm_and_rotate_backward_kernel<T, lanes()>
          <<<static_cast<unsigned>(blocks), block_warps * 32, bytes, stream>>>(in, shape, epsilon,
                                                                               angles);
    });
  }
  column_sums(in.partial, in.grad_weights_2H, static_cast<int>(blocks), static_cast<int>(width),
              stream);
}

#define ISOCHRON_INSTANTIATE(T)                                                                   \
  template void launch_rotate_heads<T>(T*, std::int64_t, const HeadShape&, const Angles&, bool,   \
                                       cudaStream_t);                                             \
  template void launch_norm_and_rotate<T>(const T*, std::int64_t, T*, const HeadShape&, const T*, \
                                          const T*, float, const Angles&, cudaStream_t);          \
  template void launch_norm_and_rotate_backward<T>(const HeadNormBackward<T>&, const HeadShape&,  \
                                                   float, const Angles&, cudaStream_t);
ISOCHRON_INSTANTIATE(float)
ISOCHRON_INSTANTIATE(__nv_bfloat16)
ISOCHRON_INSTANTIATE(__half)
#undef ISOCHRON_INSTANTIATE

}  // namespace isochron::cuda
