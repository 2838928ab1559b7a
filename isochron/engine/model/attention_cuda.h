#pragma once

#include "isochron/engine/model/attention.h"

namespace isochron {

// All spans in one launch: flash attention for bf16 and fp16, torch's memory-efficient kernel
// for fp32.
class CudaAttention final : public Attention {
 public:
  CudaAttention(const AttentionSpans& spans, at::Device device);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                                        const at::Tensor& v_SGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                const at::Tensor& v_SGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  at::Tensor cu_queries_, cu_keys_;  // int32, on the device
  std::int64_t most_queries_ = 0;    // of a span
  std::int64_t most_keys_ = 0;
};

}  // namespace isochron
