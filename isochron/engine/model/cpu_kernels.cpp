// Rows are shared out to threads in blocks whose number does not depend on the threads, and the
// gradient of a weight is a sum over blocks, so results do not depend on the threads either. Sums
// along a row run in lanes that a compiler turns into vectors.

#include "isochron/engine/model/cpu_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "isochron/engine/model/mask_stream.h"

namespace isochron::cpu {

namespace {

constexpr std::int64_t block_rows = 32;

std::int64_t num_blocks(std::int64_t rows) { return (rows + block_rows - 1) / block_rows; }

// Calls visit(block, first row, end row) in parallel over all blocks of rows.
template <class Visit>
void for_blocks(std::int64_t rows, const Visit& visit) {
  at::parallel_for(0, num_blocks(rows), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      visit(block, block * block_rows, std::min(rows, (block + 1) * block_rows));
    }
  });
}

template <class T>
T sum_of_products(const T* a, const T* b, std::int64_t size) {
  constexpr std::int64_t num_lanes = 16;
  std::array<T, num_lanes> lanes{};
  std::int64_t i = 0;
  for (; i + num_lanes <= size; i += num_lanes) {
    for (std::int64_t j = 0; j < num_lanes; ++j) {
      lanes[static_cast<std::size_t>(j)] += a[i + j] * b[i + j];
    }
  }
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
T rstd_of(const T* x, std::int64_t size, double epsilon) {
  return T{1} /
         std::sqrt(sum_of_products(x, x, size) / static_cast<T>(size) + static_cast<T>(epsilon));
}

template <class T>
void scale_row(const T* __restrict x, T rstd, const T* __restrict weight, T* __restrict y,
               std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * rstd * weight[i];
}

// grad = rstd * (g w - x rstd mean(g w x rstd)); adds g x rstd to grad_weight. `grad` may be g.
template <class T>
void norm_row_backward(const T* g, const T* x, T rstd, const T* weight, T* grad,
                       T* __restrict grad_weight, T* __restrict scratch, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    scratch[i] = g[i] * weight[i];
    grad_weight[i] += g[i] * x[i] * rstd;
  }
  const T along =
      sum_of_products(static_cast<const T*>(scratch), x, size) * rstd * rstd / static_cast<T>(size);
  for (std::int64_t i = 0; i < size; ++i) grad[i] = rstd * (scratch[i] - along * x[i]);
}

// sign: +1 turns by the angle, -1 back.
template <class T>
void turn_row(T* __restrict x, const T* __restrict cos, const T* __restrict sin, T sign,
              std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T first = x[i];
    const T second = x[i + half];
    x[i] = first * cos[i] - second * (sign * sin[i]);
    x[i + half] = second * cos[i] + first * (sign * sin[i]);
  }
}

// `out` may be x.
template <class T>
void drop_row(const T* x, T* out, std::uint64_t mask, std::int32_t limit, T scale,
              std::int64_t width) {
  const auto drop_feature = [&](std::int64_t i, std::uint64_t number) {
    out[i] = half_of(number, i) < limit ? T{0} : x[i] * scale;
  };
  for (std::int64_t i = 0; i + 1 < width; i += 2) {
    const std::uint64_t number = number_at(mask, static_cast<std::uint64_t>(i / 2));
    drop_feature(i, number);
    drop_feature(i + 1, number);
  }
  if (width % 2 == 1) {
    drop_feature(width - 1, number_at(mask, static_cast<std::uint64_t>(width / 2)));
  }
}

// The sigmoid of the gates of some rows, by torch's vectorised kernel.
template <class T>
void sigmoid_into(T* out, const T* gate, std::int64_t rows, std::int64_t width,
                  std::int64_t gate_stride) {
  const auto options = at::dtype(c10::CppTypeToScalarType<T>::value);
  at::Tensor result = at::from_blob(out, {rows, width}, options);
  at::sigmoid_out(result,
                  at::from_blob(const_cast<T*>(gate), {rows, width}, {gate_stride, 1}, options));
}

}  // namespace

bool has_kernels(const at::Tensor& tensor) {
  return tensor.is_cpu() &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

RmsNormOutput rms_norm(const at::Tensor& x_RD, const at::Tensor& weight_D, double epsilon) {
  const std::int64_t rows = x_RD.size(0);
  const std::int64_t width = x_RD.size(1);
  RmsNormOutput out = {.y_RD = at::empty_like(x_RD), .rstd_R = at::empty({rows}, x_RD.options())};
  AT_DISPATCH_FLOATING_TYPES(x_RD.scalar_type(), "rms_norm", [&] {
    const auto* x = x_RD.const_data_ptr<scalar_t>();
    const auto* weight = weight_D.const_data_ptr<scalar_t>();
    auto* y = out.y_RD.mutable_data_ptr<scalar_t>();
    auto* rstd = out.rstd_R.mutable_data_ptr<scalar_t>();
    for_blocks(rows, [&](std::int64_t, std::int64_t first, std::int64_t end) {
      for (std::int64_t r = first; r < end; ++r) {
        rstd[r] = rstd_of(x + r * width, width, epsilon);
        scale_row(x + r * width, rstd[r], weight, y + r * width, width);
      }
    });
  });
  return out;
}

at::Tensor rms_norm_again(const at::Tensor& x_RD, const at::Tensor& rstd_R,
                          const at::Tensor& weight_D) {
  const std::int64_t width = x_RD.size(1);
  at::Tensor y_RD = at::empty_like(x_RD);
  AT_DISPATCH_FLOATING_TYPES(x_RD.scalar_type(), "rms_norm_again", [&] {
    const auto* x = x_RD.const_data_ptr<scalar_t>();
    const auto* weight = weight_D.const_data_ptr<scalar_t>();
    const auto* rstd = rstd_R.const_data_ptr<scalar_t>();
    auto* y = y_RD.mutable_data_ptr<scalar_t>();
    for_blocks(x_RD.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      for (std::int64_t r = first; r < end; ++r) {
        scale_row(x + r * width, rstd[r], weight, y + r * width, width);
      }
    });
  });
  return y_RD;
}

RmsNormGradient rms_norm_backward(const at::Tensor& grad_RD, const at::Tensor& x_RD,
                                  const at::Tensor& rstd_R, const at::Tensor& weight_D,
                                  const at::Tensor& residual_RD) {
  const std::int64_t rows = x_RD.size(0);
  const std::int64_t width = x_RD.size(1);
  RmsNormGradient out;
  out.x_RD = at::empty_like(x_RD);
  const at::Tensor partial = at::zeros({num_blocks(rows), width}, x_RD.options());
  AT_DISPATCH_FLOATING_TYPES(x_RD.scalar_type(), "rms_norm_backward", [&] {
    const auto* grad = grad_RD.const_data_ptr<scalar_t>();
    const auto* x = x_RD.const_data_ptr<scalar_t>();
    const auto* rstd = rstd_R.const_data_ptr<scalar_t>();
    const auto* weight = weight_D.const_data_ptr<scalar_t>();
    const auto* residual = residual_RD.defined() ? residual_RD.const_data_ptr<scalar_t>() : nullptr;
    auto* grad_x = out.x_RD.mutable_data_ptr<scalar_t>();
    auto* grad_weight = partial.mutable_data_ptr<scalar_t>();
    for_blocks(rows, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
      std::vector<scalar_t> scratch(static_cast<std::size_t>(width));
      for (std::int64_t r = first; r < end; ++r) {
        scalar_t* out_row = grad_x + r * width;
        norm_row_backward(grad + r * width, x + r * width, rstd[r], weight, out_row,
                          grad_weight + block * width, scratch.data(), width);
        if (residual == nullptr) continue;
        for (std::int64_t i = 0; i < width; ++i) out_row[i] += residual[r * width + i];
      }
    });
  });
  out.weight_D = partial.sum(0);
  return out;
}

void rotate_heads_(const at::Tensor& heads_TMH, const RopeTable& table, Turn turn) {
  const std::int64_t heads = heads_TMH.size(1);
  const std::int64_t head_dim = heads_TMH.size(2);
  const std::int64_t half = head_dim / 2;
  AT_DISPATCH_FLOATING_TYPES(heads_TMH.scalar_type(), "rotate_heads", [&] {
    auto* data = heads_TMH.mutable_data_ptr<scalar_t>();
    const auto* cos = table.cos_TR.const_data_ptr<scalar_t>();
    const auto* sin = table.sin_TR.const_data_ptr<scalar_t>();
    const scalar_t sign = turn == Turn::forward ? 1 : -1;
    for_blocks(heads_TMH.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      for (std::int64_t t = first; t < end; ++t) {
        for (std::int64_t m = 0; m < heads; ++m) {
          turn_row(data + t * heads_TMH.stride(0) + m * head_dim, cos + t * half, sin + t * half,
                   sign, half);
        }
      }
    });
  });
}

at::Tensor norm_and_rotate_heads(const at::Tensor& heads_TMH, std::int64_t query_heads,
                                 const HeadNorm& norm, const RopeTable& table) {
  const std::int64_t heads = heads_TMH.size(1);
  const std::int64_t head_dim = heads_TMH.size(2);
  const std::int64_t half = head_dim / 2;
  at::Tensor out_TMH = at::empty(heads_TMH.sizes(), heads_TMH.options());
  AT_DISPATCH_FLOATING_TYPES(heads_TMH.scalar_type(), "norm_and_rotate_heads", [&] {
    const auto* data = heads_TMH.const_data_ptr<scalar_t>();
    const auto* cos = table.cos_TR.const_data_ptr<scalar_t>();
    const auto* sin = table.sin_TR.const_data_ptr<scalar_t>();
    const auto* q_weight = norm.q_H.const_data_ptr<scalar_t>();
    const auto* k_weight = norm.k_H.const_data_ptr<scalar_t>();
    auto* out = out_TMH.mutable_data_ptr<scalar_t>();
    for_blocks(heads_TMH.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      for (std::int64_t t = first; t < end; ++t) {
        for (std::int64_t m = 0; m < heads; ++m) {
          const scalar_t* x = data + t * heads_TMH.stride(0) + m * head_dim;
          scalar_t* y = out + (t * heads + m) * head_dim;
          scale_row(x, rstd_of(x, head_dim, norm.epsilon), m < query_heads ? q_weight : k_weight, y,
                    head_dim);
          turn_row(y, cos + t * half, sin + t * half, scalar_t{1}, half);
        }
      }
    });
  });
  return out_TMH;
}

HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor& grad_TMH,
                                                 const at::Tensor& heads_TMH,
                                                 std::int64_t query_heads, const HeadNorm& norm,
                                                 const RopeTable& table) {
  const std::int64_t tokens = heads_TMH.size(0);
  const std::int64_t heads = heads_TMH.size(1);
  const std::int64_t head_dim = heads_TMH.size(2);
  const std::int64_t half = head_dim / 2;
  const at::Tensor partial = at::zeros({num_blocks(tokens), 2, head_dim}, heads_TMH.options());
  AT_DISPATCH_FLOATING_TYPES(heads_TMH.scalar_type(), "norm_and_rotate_heads_backward", [&] {
    const auto* data = heads_TMH.const_data_ptr<scalar_t>();
    const auto* cos = table.cos_TR.const_data_ptr<scalar_t>();
    const auto* sin = table.sin_TR.const_data_ptr<scalar_t>();
    const auto* q_weight = norm.q_H.const_data_ptr<scalar_t>();
    const auto* k_weight = norm.k_H.const_data_ptr<scalar_t>();
    auto* grad = grad_TMH.mutable_data_ptr<scalar_t>();
    auto* grad_weight = partial.mutable_data_ptr<scalar_t>();
    for_blocks(tokens, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
      std::vector<scalar_t> scratch(static_cast<std::size_t>(head_dim));
      for (std::int64_t t = first; t < end; ++t) {
        for (std::int64_t m = 0; m < heads; ++m) {
          const bool is_query = m < query_heads;
          const scalar_t* x = data + t * heads_TMH.stride(0) + m * head_dim;
          scalar_t* g = grad + t * grad_TMH.stride(0) + m * head_dim;
          turn_row(g, cos + t * half, sin + t * half, scalar_t{-1}, half);
          norm_row_backward(
              g, x, rstd_of(x, head_dim, norm.epsilon), is_query ? q_weight : k_weight, g,
              grad_weight + (2 * block + (is_query ? 0 : 1)) * head_dim, scratch.data(), head_dim);
        }
      }
    });
  });
  const at::Tensor sum = partial.sum(0);
  return {.q_H = sum.select(0, 0), .k_H = sum.select(0, 1)};
}

at::Tensor swiglu_TF(const at::Tensor& gate_up_T2F) {
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  at::Tensor out_TF = at::empty({gate_up_T2F.size(0), width}, gate_up_T2F.options());
  AT_DISPATCH_FLOATING_TYPES(gate_up_T2F.scalar_type(), "swiglu", [&] {
    const auto* gate = gate_up_T2F.const_data_ptr<scalar_t>();
    auto* out = out_TF.mutable_data_ptr<scalar_t>();
    for_blocks(gate_up_T2F.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      const at::NoGradGuard no_grad;  // of this thread
      sigmoid_into(out + first * width, gate + first * 2 * width, end - first, width, 2 * width);
      for (std::int64_t t = first; t < end; ++t) {
        scalar_t* __restrict y = out + t * width;
        const scalar_t* __restrict g = gate + t * 2 * width;
        const scalar_t* __restrict u = g + width;
        for (std::int64_t i = 0; i < width; ++i) y[i] *= g[i] * u[i];
      }
    });
  });
  return out_TF;
}

void swiglu_backward_(const at::Tensor& gate_up_T2F, const at::Tensor& grad_TF) {
  const std::int64_t width = gate_up_T2F.size(1) / 2;
  AT_DISPATCH_FLOATING_TYPES(gate_up_T2F.scalar_type(), "swiglu_backward", [&] {
    const auto* grad = grad_TF.const_data_ptr<scalar_t>();
    auto* gate = gate_up_T2F.mutable_data_ptr<scalar_t>();
    for_blocks(gate_up_T2F.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      const at::NoGradGuard no_grad;  // of this thread
      std::vector<scalar_t> sigmoids(static_cast<std::size_t>((end - first) * width));
      sigmoid_into(sigmoids.data(), gate + first * 2 * width, end - first, width, 2 * width);
      for (std::int64_t t = first; t < end; ++t) {
        const scalar_t* __restrict s = sigmoids.data() + (t - first) * width;
        const scalar_t* __restrict d = grad + t * width;
        scalar_t* __restrict g = gate + t * 2 * width;
        scalar_t* __restrict u = g + width;
        for (std::int64_t i = 0; i < width; ++i) {
          const scalar_t silu = g[i] * s[i];
          g[i] = d[i] * u[i] * (s[i] + silu * (1 - s[i]));
          u[i] = d[i] * silu;
        }
      }
    });
  });
}

void drop(const at::Tensor& x_TD, const at::Tensor& out_TD, const at::Tensor& streams_T,
          std::uint64_t index, std::int32_t limit, double scale) {
  const std::int64_t width = x_TD.size(1);
  AT_DISPATCH_FLOATING_TYPES(x_TD.scalar_type(), "drop", [&] {
    const auto* x = x_TD.const_data_ptr<scalar_t>();
    auto* out = out_TD.mutable_data_ptr<scalar_t>();
    const auto* streams = streams_T.const_data_ptr<std::int64_t>();
    for_blocks(x_TD.size(0), [&](std::int64_t, std::int64_t first, std::int64_t end) {
      for (std::int64_t t = first; t < end; ++t) {
        const std::uint64_t mask = number_at(static_cast<std::uint64_t>(streams[t]), index);
        drop_row(x + t * width, out + t * width, mask, limit, static_cast<scalar_t>(scale), width);
      }
    });
  });
}

}  // namespace isochron::cpu
