#pragma once

#include <ATen/core/Tensor.h>

#include "isochron/engine/model/rope.h"

// T packed tokens, N query heads, G key and value heads, H head dim, M = N + G.

namespace isochron {

// Norms over each query and key head, before they are rotated. Undefined weights: none.
struct HeadNorm {
  at::Tensor q_H, k_H;
  double epsilon = 0;

  [[nodiscard]] bool is_used() const { return q_H.defined(); }
};

// By the angles of the table, or back by them.
enum class Turn { forward, back };

// Turns each half pair (x[i], x[i + H/2]) of every head by the angle of its token.
void rotate_heads_(const at::Tensor& heads_TMH, const RopeTable& table);
// The transpose of that, for gradients.
void rotate_heads_back_(const at::Tensor& heads_TMH, const RopeTable& table);

// Query heads, then key heads, normed and rotated.
[[nodiscard]] at::Tensor norm_and_rotate_heads(const at::Tensor& heads_TMH,
                                               std::int64_t query_heads, const HeadNorm& norm,
                                               const RopeTable& table);

// The gradient of that, in place of `grad_TMH`; returns those of the two norms.
struct HeadNormGradient {
  at::Tensor q_H, k_H;
};
[[nodiscard]] HeadNormGradient norm_and_rotate_heads_backward_(const at::Tensor& grad_TMH,
                                                               const at::Tensor& heads_TMH,
                                                               std::int64_t query_heads,
                                                               const HeadNorm& norm,
                                                               const RopeTable& table);

}  // namespace isochron
