#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace isochron::cuda {

// Eight consecutive numbers of a row, in fp32: what a thread reads and writes at a time, in 16-byte
// accesses. Addresses are multiples of 16 bytes.
struct Eight {
  float x[8];
};

__device__ inline float2 to_floats(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }
__device__ inline float2 to_floats(__half2 pair) { return __half22float2(pair); }
__device__ inline void from_floats(float2 from, __nv_bfloat162& pair) {
  pair = __float22bfloat162_rn(from);
}
__device__ inline void from_floats(float2 from, __half2& pair) { pair = __float22half2_rn(from); }

template <class T>
struct PairOf;
template <>
struct PairOf<__nv_bfloat16> {
  using type = __nv_bfloat162;
};
template <>
struct PairOf<__half> {
  using type = __half2;
};

template <class T>
__device__ inline Eight load(const T* from) {
  Eight eight;
  if constexpr (sizeof(T) == 4) {
    const float4 low = reinterpret_cast<const float4*>(from)[0];
    const float4 high = reinterpret_cast<const float4*>(from)[1];
    eight = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
  } else {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const auto* pairs = reinterpret_cast<const typename PairOf<T>::type*>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = to_floats(pairs[i]);
      eight.x[2 * i] = two.x;
      eight.x[2 * i + 1] = two.y;
    }
  }
  return eight;
}

template <class T>
__device__ inline void store(T* to, const Eight& eight) {
  if constexpr (sizeof(T) == 4) {
    reinterpret_cast<float4*>(to)[0] = {eight.x[0], eight.x[1], eight.x[2], eight.x[3]};
    reinterpret_cast<float4*>(to)[1] = {eight.x[4], eight.x[5], eight.x[6], eight.x[7]};
  } else {
    uint4 raw;
    auto* pairs = reinterpret_cast<typename PairOf<T>::type*>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      from_floats({eight.x[2 * i], eight.x[2 * i + 1]}, pairs[i]);
    }
    *reinterpret_cast<uint4*>(to) = raw;
  }
}

// The sum over groups of `lanes` neighbours of a warp, in each of them.
template <int lanes = 32>
__device__ inline float sum_of_lanes(float value) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// The sum over a block of at most 32 whole warps, in each thread. `scratch` is 32 shared floats
// that nobody reads any more.
__device__ inline float sum_of_block(float value, float* scratch) {
  value = sum_of_lanes(value);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  return sum_of_lanes(lane < blockDim.x / 32 ? scratch[lane] : 0.0f);
}

}  // namespace isochron::cuda
