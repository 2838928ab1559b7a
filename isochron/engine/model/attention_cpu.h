#pragma once

#include "isochron/engine/model/attention.h"

namespace isochron {

// Calls of torch's fused kernel for each span: one for the keys of its queries, one for those
// before, if there are any.
class CpuAttention final : public Attention {
 public:
  explicit CpuAttention(AttentionSpans spans);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                                        const at::Tensor& v_SGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                const at::Tensor& v_SGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  AttentionSpans spans_;
};

}  // namespace isochron
