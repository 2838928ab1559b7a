#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

// T packed tokens, N query heads, G key and value heads, H head dim.

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
// that this rank holds.
class Attention {
 public:
  virtual ~Attention() = default;

  [[nodiscard]] virtual AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                                const at::Tensor& v_TGH) const = 0;

  // Where the gradients of q, k and v go: slices of one tensor, so that one matrix product takes
  // all three.
  struct Gradients {
    at::Tensor q_TNH, k_TGH, v_TGH;
  };
  virtual void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                        const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                        const AttentionOutput& output, const Gradients& gradients) const = 0;
};

// Attention inside each of the sequences that start at `cu_seqlens` (and end at the next), all of
// them whole and on this device.
[[nodiscard]] std::shared_ptr<const Attention> packed_attention(
    const std::vector<std::int64_t>& cu_seqlens, at::Device device);

}  // namespace isochron
