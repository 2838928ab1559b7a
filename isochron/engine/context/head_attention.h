#pragma once

#include <span>
#include <vector>

#include "isochron/engine/context/context_attention.h"

namespace isochron {

// The exchange all_to_all of context_attention().
class HeadAttention final : public Attention {
 public:
  HeadAttention(std::span<const std::int32_t> cu_seqlens, Communicator& group, at::Device device);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                        const at::Tensor& v_TGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                const at::Tensor& v_TGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  // All tokens of this rank's share of the heads of each tensor, in the order of the sequences;
  // tensors of the tokens that each rank holds go in.
  [[nodiscard]] std::vector<at::Tensor> tokens_for_heads(const std::vector<at::Tensor>& held) const;
  // The way back: all heads of the tokens that this rank holds.
  void heads_for_tokens(const std::vector<at::Tensor>& whole,
                        const std::vector<at::Tensor>& held) const;

  Communicator& group_;
  at::Tensor order_;  // where each token of the sequences lies among the shards
  std::shared_ptr<const Attention> local_;
};

}  // namespace isochron
