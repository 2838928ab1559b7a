#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

// T packed tokens, S keys, N query heads, G key and value heads, H head dim.

namespace isochron {

struct AttentionOutput {
  at::Tensor out_TNH;
  at::Tensor lse_NT;  // log of the sum of the exponentials of each row of scores
};

// Causal attention over the sequences of a micro-batch, and its gradient. Scores are scaled by
// 1/sqrt(H). Query head n reads key and value head n / (N/G). Inputs may be slices of one tensor:
// H alone is contiguous. No tensor of queries x keys exists.
//
// An implementation knows the layout of the tokens; a decoder hands it q, k and v of the tokens
// that this rank holds: S = T.
class Attention {
 public:
  virtual ~Attention() = default;

  [[nodiscard]] virtual AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                                                const at::Tensor& v_SGH) const = 0;

  // Where the gradients of q, k and v go: slices of one tensor, so that one matrix product takes
  // all three.
  struct Gradients {
    at::Tensor q_TNH, k_SGH, v_SGH;
  };
  virtual void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                        const at::Tensor& k_SGH, const at::Tensor& v_SGH,
                        const AttentionOutput& output, const Gradients& gradients) const = 0;
};

// Who sees whom: the queries [cu_queries[i], cu_queries[i+1]) are the last ones of the keys
// [cu_keys[i], cu_keys[i+1]), and each sees its own key and all before it.
struct AttentionSpans {
  std::vector<std::int64_t> cu_queries, cu_keys;  // ascending from 0 to T and to S
};

// Attention to keys that are all on this device.
[[nodiscard]] std::shared_ptr<const Attention> local_attention(const AttentionSpans& spans,
                                                               at::Device device);

}  // namespace isochron
