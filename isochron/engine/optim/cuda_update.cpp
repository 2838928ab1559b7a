#include "isochron/engine/optim/cuda_update.h"

#include <ATen/ATen.h>

#include <cmath>

#include "isochron/engine/cuda/dispatch.h"
#include "isochron/engine/optim/update_launches.h"

namespace isochron::cuda {

namespace {

bool is_flat(const at::Tensor& tensor) {
  return tensor.is_contiguous() && is_vectorized(tensor.view(-1));
}

// In double, once for all numbers: 1 - beta2 in fp32 is off by 5e-5.
AdamWCoefficients coefficients_of(const AdamWStep& step) {
  const auto count = static_cast<double>(step.num_updates);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double correction2 = 1 - std::pow(step.beta2, count);
  return {.gradient_factor = static_cast<float>(step.gradient_factor),
          .decay = static_cast<float>(1 - step.lr * step.weight_decay),
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .step_size = static_cast<float>(step.lr / correction1),
          .inverse_bias = static_cast<float>(1 / std::sqrt(correction2)),
          .epsilon = static_cast<float>(step.epsilon)};
}

}  // namespace

bool has_update(const at::Tensor& values, const at::Tensor& other) {
  return values.scalar_type() == at::kFloat && is_flat(values) && is_flat(other) &&
         values.numel() == other.numel();
}

void accumulate_(const at::Tensor& sum, const at::Tensor& gradient, Onto onto) {
  launch_like(gradient, [&]<class T>(T, cudaStream_t stream) {
    launch_accumulate<T>(write<float>(sum), read<T>(gradient), sum.numel(), onto == Onto::zero,
                         stream);
  });
}

void add_squares_(const at::Tensor& total, const at::Tensor& values) {
  const at::Tensor partial = at::empty({num_square_partials}, total.options());
  launch_like(values, [&](auto, cudaStream_t stream) {
    launch_add_squares(write<double>(total), write<double>(partial), read<float>(values),
                       values.numel(), stream);
  });
}

void adamw_(const AdamWMemory& memory, const AdamWStep& step) {
  launch_like(memory.weights, [&]<class T>(T, cudaStream_t stream) {
    launch_adamw<T>({.master = write<float>(memory.master),
                     .exp_avg = write<float>(memory.exp_avg),
                     .exp_avg_sq = write<float>(memory.exp_avg_sq),
                     .gradient = read<float>(memory.gradient),
                     .weights = write<T>(memory.weights)},
                    coefficients_of(step), memory.master.numel(), stream);
  });
}

}  // namespace isochron::cuda
