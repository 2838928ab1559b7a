#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "isochron/cost/memory.h"
#include "isochron/engine/model/dropout.h"
#include "isochron/engine/model/linear.h"

// T packed tokens, D hidden width, F width of the MLP.

namespace isochron {

// y = x + down(silu(gate(norm(x))) * up(norm(x))).
struct MlpBlock {
  double epsilon = 0;
  at::Tensor norm_D;
  Linear gate_up;
  Linear down;

  // What the backward needs. What it can compute again without a matrix product is kept for
  // Recompute::none alone.
  struct Kept {
    at::Tensor x_TD, rstd_T;
    at::Tensor normed_TD;  // none
    at::Tensor gate_up_T2F;
    at::Tensor product_TF;  // none
  };
  struct Gradient {
    at::Tensor x_TD;
    std::vector<at::Tensor> parameters;  // norm, gate and up, down
  };

  [[nodiscard]] Kept keep(const at::Tensor& x_TD, const LayerMasks& masks,
                          Recompute recompute) const;
  [[nodiscard]] at::Tensor result_TD(const Kept& kept, const LayerMasks& masks) const;
  // Uses `kept` up: each tensor goes as soon as nothing needs it any more.
  [[nodiscard]] Gradient backward(const at::Tensor& grad_TD, Kept kept,
                                  const LayerMasks& masks) const;
};

}  // namespace isochron
