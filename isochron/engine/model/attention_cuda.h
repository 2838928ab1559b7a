#pragma once

#include "isochron/engine/model/attention.h"

namespace isochron {

// All sequences in one launch: flash attention for bf16 and fp16, torch's memory-efficient kernel
// for fp32.
class CudaAttention final : public Attention {
 public:
  CudaAttention(const std::vector<std::int64_t>& cu_seqlens, at::Device device);

  [[nodiscard]] AttentionOutput forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                        const at::Tensor& v_TGH) const override;
  void backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                const at::Tensor& v_TGH, const AttentionOutput& output,
                const Gradients& gradients) const override;

 private:
  at::Tensor cu_seqlens_;  // int32, on the device
  std::int64_t longest_ = 0;
};

}  // namespace isochron
