#pragma once

#include <span>
#include <vector>

#include "isochron/engine/context/context_attention.h"

namespace isochron {

// The exchange all_gather_kv of context_attention().
class GatheredAttention final : public Attention {
 public:
  GatheredAttention(std::span<const std::int32_t> cu_seqlens, Communicator& group,
                    at::Device device, const ContextOptions& options);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                        const at::Tensor& v_TGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                const at::Tensor& v_TGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  struct Heads;   // some key and value heads, and the query heads that read them
  struct Gather;  // their keys and values on the way

  [[nodiscard]] std::vector<Heads> head_parts(const at::Tensor& q_TNH,
                                              const at::Tensor& k_TGH) const;
  [[nodiscard]] Gather start_gather(const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                                    const Heads& heads) const;
  // S x 2 x G x H: what the queries of this rank see, first the span of one chunk, then the next.
  [[nodiscard]] at::Tensor finish_gather(Gather gather) const;
  template <class Compute>
  void for_each_part(const at::Tensor& q_TNH, const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                     Compute compute) const;

  Communicator& group_;
  ContextOptions options_;
  at::Tensor seen_S_;  // which of the gathered tokens each key is
  std::shared_ptr<const Attention> local_;
};

}  // namespace isochron
