#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace isochron {

// sum += gradient, in the fp32 of `sum`; equal sizes. Onto zero, whatever `sum` held before.
enum class Onto { zero, sum };
void accumulate_(const at::Tensor& sum, const at::Tensor& gradient, Onto onto);

// total += the sum of the squares of `values`, in the fp64 of `total`, which is one number.
void add_squares_(const at::Tensor& total, const at::Tensor& values);

// One update of flat, equally long memory, fp32 but for `weights`.
struct AdamWMemory {
  at::Tensor master, exp_avg, exp_avg_sq;
  at::Tensor gradient;  // stays as it is
  at::Tensor weights;   // gets the new master, rounded; may be the master itself
};
struct AdamWStep {
  std::int64_t num_updates = 1;  // with this one
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double gradient_factor = 1;  // what gradients are multiplied by first
};
// As torch's AdamW.
void adamw_(const AdamWMemory& memory, const AdamWStep& step);

}  // namespace isochron
