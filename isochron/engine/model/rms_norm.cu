// A block takes a row, a thread eight of its columns, which stay in registers: every tensor is read
// once and written once. The backward's blocks go on to further rows, add the gradient of their own
// columns' weights up in registers, and leave it as a row of partial sums.

#include <algorithm>

#include "isochron/engine/cuda/column_sums.cuh"
#include "isochron/engine/cuda/eight.cuh"
#include "isochron/engine/model/layer_launches.h"

namespace isochron::cuda {

namespace {

// Enough blocks to fill a device; no more partial sums than that.
constexpr std::int64_t max_partials = 1024;

unsigned threads_of(std::int64_t width) {
  return static_cast<unsigned>((width / 8 + 31) / 32 * 32);
}

// y = (x rstd) weight, by which rms_norm_again gives the same bits.
__device__ Eight scaled(const Eight& x, float rstd, const Eight& weight) {
  Eight y;
#pragma unroll
  for (int i = 0; i < 8; ++i) y.x[i] = x.x[i] * rstd * weight.x[i];
  return y;
}

template <class T>
__global__ void norm_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                            T* __restrict__ y, float* __restrict__ rstd, int width, float epsilon) {
  __shared__ float scratch[32];
  const int column = static_cast<int>(threadIdx.x) * 8;
  const std::int64_t offset = static_cast<std::int64_t>(blockIdx.x) * width + column;
  Eight values = {};
  if (column < width) values = load(x + offset);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) squares += values.x[i] * values.x[i];
  squares = sum_of_block(squares, scratch);
  const float scale = 1.0f / sqrtf(squares / static_cast<float>(width) + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
  if (column < width) store(y + offset, scaled(values, scale, load(weight + column)));
}

template <class T>
__global__ void norm_again_kernel(const T* __restrict__ x, const float* __restrict__ rstd,
                                  const T* __restrict__ weight, T* __restrict__ y, int width) {
  const int column = static_cast<int>(threadIdx.x) * 8;
  if (column >= width) return;
  const std::int64_t offset = static_cast<std::int64_t>(blockIdx.x) * width + column;
  store(y + offset, scaled(load(x + offset), rstd[blockIdx.x], load(weight + column)));
}

// grad_x = rstd (g w - x rstd^2 mean(g w x)) + residual.
template <class T>
__global__ void norm_backward_kernel(NormBackward<T> in, std::int64_t rows, int width) {
  __shared__ float scratch[2][32];
  const int column = static_cast<int>(threadIdx.x) * 8;
  const bool is_inside = column < width;
  Eight weight = {};
  if (is_inside) weight = load(in.weight_D + column);
  Eight grad_weight = {};
  int turn = 0;  // the scratch of the row before may still be read
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    const std::int64_t offset = row * width + column;
    Eight grad = {};
    Eight x = {};
    Eight residual = {};
    if (is_inside) {
      grad = load(in.grad_RD + offset);
      x = load(in.x_RD + offset);
      if (in.residual_RD != nullptr) residual = load(in.residual_RD + offset);
    }
    const float rstd = in.rstd_R[row];
    float along = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      grad_weight.x[i] += grad.x[i] * x.x[i] * rstd;
      grad.x[i] *= weight.x[i];
      along += grad.x[i] * x.x[i];
    }
    along = sum_of_block(along, scratch[turn]) * rstd * rstd / static_cast<float>(width);
    if (!is_inside) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      residual.x[i] += rstd * (grad.x[i] - along * x.x[i]);
    }
    store(in.grad_x_RD + offset, residual);
  }
  if (is_inside) {
    store(in.partial + static_cast<std::int64_t>(blockIdx.x) * width + column, grad_weight);
  }
}

}  // namespace

std::int64_t num_norm_partials(std::int64_t rows) { return std::min(rows, max_partials); }

template <class T>
void launch_rms_norm(const T* x_RD, const T* weight_D, T* y_RD, float* rstd_R, std::int64_t rows,
                     std::int64_t width, float epsilon, cudaStream_t stream) {
  if (rows == 0) return;
  norm_kernel<<<static_cast<unsigned>(rows), threads_of(width), 0, stream>>>(
      x_RD, weight_D, y_RD, rstd_R, static_cast<int>(width), epsilon);
}

template <class T>
void launch_rms_norm_again(const T* x_RD, const float* rstd_R, const T* weight_D, T* y_RD,
                           std::int64_t rows, std::int64_t width, cudaStream_t stream) {
  if (rows == 0) return;
  norm_again_kernel<<<static_cast<unsigned>(rows), threads_of(width), 0, stream>>>(
      x_RD, rstd_R, weight_D, y_RD, static_cast<int>(width));
}

template <class T>
void launch_rms_norm_backward(const NormBackward<T>& in, std::int64_t rows, std::int64_t width,
                              cudaStream_t stream) {
  const std::int64_t blocks = num_norm_partials(rows);
  if (blocks > 0) {
    norm_backward_kernel<<<static_cast<unsigned>(blocks), threads_of(width), 0, stream>>>(
        in, rows, static_cast<int>(width));
  }
  column_sums(in.partial, in.grad_weight_D, static_cast<int>(blocks), static_cast<int>(width),
              stream);
}

#define ISOCHRON_INSTANTIATE(T)                                                                 \
  template void launch_rms_norm<T>(const T*, const T*, T*, float*, std::int64_t, std::int64_t,  \
                                   float, cudaStream_t);                                        \
  template void launch_rms_norm_again<T>(const T*, const float*, const T*, T*, std::int64_t,    \
                                         std::int64_t, cudaStream_t);                           \
  template void launch_rms_norm_backward<T>(const NormBackward<T>&, std::int64_t, std::int64_t, \
                                            cudaStream_t);
ISOCHRON_INSTANTIATE(float)
ISOCHRON_INSTANTIATE(__nv_bfloat16)
ISOCHRON_INSTANTIATE(__half)
#undef ISOCHRON_INSTANTIATE

}  // namespace isochron::cuda
