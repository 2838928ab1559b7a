// A block takes a row. Each thread keeps the largest of its logits and sums relative to it, and
// scales the sums when a larger one comes: one pass (Milakov and Gimelshein, 2018).
//
//   state (m, s, t):  s = sum exp(x - m),  t = sum x exp(x - m)
//   lse = m + log s,  entropy = lse - t / s

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "isochron/engine/loss/softmax_launches.h"

namespace isochron::cuda {

namespace {

constexpr int block_threads = 512;
constexpr float minus_infinity = -__builtin_huge_valf();

template <int count>
struct alignas(count * sizeof(float)) Logits {
  float x[count];
};

template <class T, int count>
struct alignas(count * sizeof(T)) Gradients {
  T x[count];
};

struct State {
  float largest = minus_infinity;
  float sum = 0;
  float weighted = 0;
};

__device__ float scale_to(float from, float to) {
  return from == to ? 1.0f : __expf(from - to);  // also where both are minus infinity
}

__device__ State joined(const State& a, const State& b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float scale_a = scale_to(a.largest, largest);
  const float scale_b = scale_to(b.largest, largest);
  return {largest, a.sum * scale_a + b.sum * scale_b, a.weighted * scale_a + b.weighted * scale_b};
}

__device__ State shuffled(const State& state, int distance) {
  return {__shfl_xor_sync(0xffffffffu, state.largest, distance),
          __shfl_xor_sync(0xffffffffu, state.sum, distance),
          __shfl_xor_sync(0xffffffffu, state.weighted, distance)};
}

template <bool has_entropy, int count>
__device__ void add(State& state, const Logits<count>& logits) {
  float largest = logits.x[0];
#pragma unroll
  for (int i = 1; i < count; ++i) largest = fmaxf(largest, logits.x[i]);
  if (largest > state.largest) {
    const float scale = __expf(state.largest - largest);
    state.sum *= scale;
    if (has_entropy) state.weighted *= scale;
    state.largest = largest;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float exponential = __expf(logits.x[i] - state.largest);
    state.sum += exponential;
    if (has_entropy) state.weighted += exponential * logits.x[i];
  }
}

template <int count>
__device__ const Logits<count>* row_of(const LogitRows& in) {
  return reinterpret_cast<const Logits<count>*>(
      in.logits_CV + static_cast<std::int64_t>(blockIdx.x) * in.vocabulary);
}

// `count` logits at a time, a divisor of the vocabulary.
template <bool has_entropy, int count>
__global__ void __launch_bounds__(block_threads) softmax_kernel(LogitRows in, SoftmaxResults out) {
  const Logits<count>* row = row_of<count>(in);
  const int vectors = static_cast<int>(in.vocabulary / count);
  State state;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += block_threads) {
    add<has_entropy>(state, row[i]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    state = joined(state, shuffled(state, distance));
  }
  __shared__ State warps[block_threads / 32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = state;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < block_threads / 32; ++i) state = joined(state, warps[i]);
  const float lse = state.largest + logf(state.sum);
  out.lse_C[blockIdx.x] = lse;
  out.log_prob_C[blockIdx.x] =
      in.logits_CV[blockIdx.x * in.vocabulary + in.labels_C[blockIdx.x]] - lse;
  if (has_entropy) out.entropy_C[blockIdx.x] = lse - state.weighted / state.sum;
}

template <class T, bool has_entropy, int count>
__global__ void __launch_bounds__(block_threads)
    softmax_backward_kernel(LogitRows in, SoftmaxSlopes slopes, T* grad_CV) {
  const Logits<count>* row = row_of<count>(in);
  auto* out = reinterpret_cast<Gradients<T, count>*>(
      grad_CV + static_cast<std::int64_t>(blockIdx.x) * in.vocabulary);
  const int vectors = static_cast<int>(in.vocabulary / count);
  const float lse = slopes.lse_C[blockIdx.x];
  const float slope = slopes.grad_log_prob_C != nullptr ? slopes.grad_log_prob_C[blockIdx.x] : 0;
  const float entropy = has_entropy ? slopes.entropy_C[blockIdx.x] : 0;
  const float entropy_slope = has_entropy ? slopes.grad_entropy_C[blockIdx.x] : 0;
  const auto label = static_cast<int>(in.labels_C[blockIdx.x]);
  // Several reads before the first write, which might be to the same memory for all the compiler
  // knows.
  constexpr int batch = 2;
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += batch * block_threads) {
    Logits<count> logits[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if (first + k * block_threads < vectors) logits[k] = row[first + k * block_threads];
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int i = first + k * block_threads;
      if (i >= vectors) break;
      Gradients<T, count> grads;
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const float log_p = logits[k].x[j] - lse;
        const float factor = has_entropy ? slope + entropy_slope * (log_p + entropy) : slope;
        const float at_label = i * count + j == label ? slope : 0.0f;
        grads.x[j] = static_cast<T>(at_label - factor * __expf(log_p));
      }
      out[i] = grads;
    }
  }
}

// Calls launch(has_entropy, count) as constants.
template <class Launch>
void with_constants(bool has_entropy, std::int64_t vocabulary, const Launch& launch) {
  const auto with_count = [&](auto entropy) {
    if (vocabulary % 4 == 0) return launch(entropy, std::integral_constant<int, 4>());
    return launch(entropy, std::integral_constant<int, 1>());
  };
  if (has_entropy) return with_count(std::true_type());
  return with_count(std::false_type());
}

}  // namespace

void launch_softmax(const LogitRows& in, const SoftmaxResults& out, cudaStream_t stream) {
  if (in.rows == 0) return;
  with_constants(out.entropy_C != nullptr, in.vocabulary, [&](auto has_entropy, auto count) {
    softmax_kernel<has_entropy(), count()>
        <<<static_cast<unsigned>(in.rows), block_threads, 0, stream>>>(in, out);
  });
}

template <class T>
void launch_softmax_backward(const LogitRows& in, const SoftmaxSlopes& slopes, T* grad_CV,
                             cudaStream_t stream) {
  if (in.rows == 0) return;
  with_constants(
      slopes.grad_entropy_C != nullptr, in.vocabulary, [&](auto has_entropy, auto count) {
        softmax_backward_kernel<T, has_entropy(), count()>
            <<<static_cast<unsigned>(in.rows), block_threads, 0, stream>>>(in, slopes, grad_CV);
      });
}

template void launch_softmax_backward<float>(const LogitRows&, const SoftmaxSlopes&, float*,
                                             cudaStream_t);
template void launch_softmax_backward<__nv_bfloat16>(const LogitRows&, const SoftmaxSlopes&,
                                                     __nv_bfloat16*, cudaStream_t);
template void launch_softmax_backward<__half>(const LogitRows&, const SoftmaxSlopes&, __half*,
                                              cudaStream_t);

}  // namespace isochron::cuda
