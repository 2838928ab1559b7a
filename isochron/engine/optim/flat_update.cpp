#include "isochron/engine/optim/flat_update.h"

#include <ATen/ATen.h>

#include "isochron/engine/optim/cuda_update.h"

namespace isochron {

void accumulate_(const at::Tensor& sum, const at::Tensor& gradient, Onto onto) {
  if (cuda::has_update(sum, gradient)) return cuda::accumulate_(sum, gradient, onto);
  at::Tensor target = sum;
  onto == Onto::zero ? target.copy_(gradient) : target.add_(gradient);
}

void add_squares_(const at::Tensor& total, const at::Tensor& values) {
  if (cuda::has_update(values, values)) return cuda::add_squares_(total, values);
  at::Tensor(total).add_(values.to(at::kDouble).square_().sum());
}

void adamw_(const AdamWMemory& memory, const AdamWStep& step) {
  if (cuda::has_update(memory.master, memory.weights)) return cuda::adamw_(memory, step);
  const at::Tensor gradient =
      step.gradient_factor == 1 ? memory.gradient : memory.gradient.mul(step.gradient_factor);
  const at::Tensor count = at::full({}, step.num_updates, memory.master.options());
  at::_fused_adamw_({memory.master}, {gradient}, {memory.exp_avg}, {memory.exp_avg_sq}, {}, {count},
                    step.lr, step.beta1, step.beta2, step.weight_decay, step.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
  if (!memory.weights.is_same(memory.master)) at::Tensor(memory.weights).copy_(memory.master);
}

}  // namespace isochron
