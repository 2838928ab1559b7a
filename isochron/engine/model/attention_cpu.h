#pragma once

#include "isochron/engine/model/attention.h"

namespace isochron {

// One call of torch's fused kernel per sequence.
class CpuAttention final : public Attention {
 public:
  explicit CpuAttention(std::vector<std::int64_t> cu_seqlens);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                        const at::Tensor& v_TGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                const at::Tensor& v_TGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  std::vector<std::int64_t> cu_seqlens_;
};

}  // namespace isochron
