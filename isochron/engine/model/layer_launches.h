#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// The kernels of cuda_kernels.h over plain memory, for T = float, __nv_bfloat16 and __half. Rows
// start at multiples of 16 bytes and widths are multiples of 8; arithmetic is fp32. Results are
// equal bit by bit from launch to launch.

namespace isochron::cuda {

constexpr std::int64_t max_norm_width = 8192;
constexpr std::int64_t max_head_dim = 512;

template <class T>
void launch_rms_norm(const T* x_RD, const T* weight_D, T* y_RD, float* rstd_R, std::int64_t rows,
                     std::int64_t width, float epsilon, cudaStream_t stream);
template <class T>
void launch_rms_norm_again(const T* x_RD, const float* rstd_R, const T* weight_D, T* y_RD,
                           std::int64_t rows, std::int64_t width, cudaStream_t stream);

// Rows of partial sums that the gradient of a weight takes, `width` floats each; of head norms
// 2 * head dim.
[[nodiscard]] std::int64_t num_norm_partials(std::int64_t rows);
[[nodiscard]] std::int64_t num_head_partials(std::int64_t tokens);

template <class T>
struct NormBackward {
  const T* grad_RD;
  const T* x_RD;
  const float* rstd_R;
  const T* weight_D;
  const T* residual_RD;  // or null
  T* grad_x_RD;
  float* partial;
  T* grad_weight_D;
};
template <class T>
void launch_rms_norm_backward(const NormBackward<T>& in, std::int64_t rows, std::int64_t width,
                              cudaStream_t stream);

struct HeadShape {
  std::int64_t tokens, heads, query_heads, head_dim;
};
// Angles of a token: head_dim / 2 cosines and sines.
struct Angles {
  const float* cos;
  const float* sin;
};
// Heads of a token lie one behind the other, those of the next token `stride` elements further.
template <class T>
void launch_rotate_heads(T* heads_TMH, std::int64_t stride, const HeadShape& shape,
                         const Angles& angles, bool backwards, cudaStream_t stream);
template <class T>
void launch_norm_and_rotate(const T* heads_TMH, std::int64_t stride, T* out_TMH,
                            const HeadShape& shape, const T* q_H, const T* k_H, float epsilon,
                            const Angles& angles, cudaStream_t stream);
template <class T>
struct HeadNormBackward {
  T* grad_TMH;
  std::int64_t grad_stride;
  const T* heads_TMH;
  std::int64_t stride;
  const T* q_H;
  const T* k_H;
  float* partial;
  T* grad_weights_2H;  // of the queries' norm, then of the keys'
};
template <class T>
void launch_norm_and_rotate_backward(const HeadNormBackward<T>& in, const HeadShape& shape,
                                     float epsilon, const Angles& angles, cudaStream_t stream);

template <class T>
void launch_swiglu(const T* gate_up_T2F, T* out_TF, std::int64_t tokens, std::int64_t width,
                   cudaStream_t stream);
template <class T>
void launch_swiglu_backward(const T* grad_TF, const T* gate_up_T2F, T* out_T2F, std::int64_t tokens,
                            std::int64_t width, cudaStream_t stream);

}  // namespace isochron::cuda
