#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "isochron/cost/memory.h"
#include "isochron/engine/model/attention.h"
#include "isochron/engine/model/dropout.h"
#include "isochron/engine/model/linear.h"
#include "isochron/engine/model/rope.h"
#include "isochron/engine/model/rotary.h"

// T packed tokens, D hidden width, N query heads, G key and value heads, H head dim,
// E = (N + 2G)H, Q = NH.

namespace isochron {

// y = x + output(attention(rotary(qkv(norm(x))))).
struct AttentionBlock {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  double epsilon = 0;
  at::Tensor norm_D;
  Linear qkv;
  HeadNorm head_norm;
  Linear output;

  // What the backward needs. What it can compute again without a matrix product is kept for
  // Recompute::none alone.
  struct Kept {
    at::Tensor x_TD, rstd_T;
    at::Tensor normed_TD;  // none
    at::Tensor qkv_TE;     // with q and k rotated in place, unless they are normed first
    at::Tensor rotated;    // q and k, T x (N+G) x H; none, and only if they are normed
    AttentionOutput attention;
  };
  struct Gradient {
    at::Tensor x_TD;
    std::vector<at::Tensor> parameters;  // norm, qkv, head norms, output
  };

  [[nodiscard]] Kept keep(const at::Tensor& x_TD, const RopeTable& table,
                          const Attention& attention, const LayerMasks& masks,
                          Recompute recompute) const;
  [[nodiscard]] at::Tensor result_TD(const Kept& kept, const LayerMasks& masks) const;
  // Uses `kept` up: each tensor goes as soon as nothing needs it any more.
  [[nodiscard]] Gradient backward(const at::Tensor& grad_TD, Kept kept, const RopeTable& table,
                                  const Attention& attention, const LayerMasks& masks) const;

 private:
  struct Heads {
    at::Tensor q_TNH, k_TGH, v_TGH;
  };
  // q and k out of `rotated` where they are normed, else out of `qkv`.
  [[nodiscard]] Heads split(const at::Tensor& qkv_TE, const at::Tensor& rotated) const;
  // Query and key heads, a view.
  [[nodiscard]] at::Tensor query_key_heads(const at::Tensor& qkv_TE) const;
};

}  // namespace isochron
