// The kernel takes heads of any stride and fewer key than query heads, so slices of the packed
// tensor go in as they are. Its results are tokens first again, and are copied into their place.

#include "isochron/engine/model/attention_cpu.h"

#include <ATen/ATen.h>

namespace isochron {

namespace {

// S x N x H of one sequence as the kernel wants it, 1 x N x S x H, without a copy.
at::Tensor heads_first(const at::Tensor& packed_TNH, std::int64_t begin, std::int64_t length) {
  return packed_TNH.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& result_1NSH) {
  return result_1NSH.squeeze(0).transpose(0, 1);
}

template <class Visit>
void for_each_sequence(const std::vector<std::int64_t>& cu_seqlens, Visit visit) {
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const std::int64_t length = cu_seqlens[i + 1] - cu_seqlens[i];
    if (length > 0) visit(cu_seqlens[i], length);
  }
}

}  // namespace

CpuAttention::CpuAttention(std::vector<std::int64_t> cu_seqlens)
    : cu_seqlens_(std::move(cu_seqlens)) {}

AttentionOutput CpuAttention::forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                      const at::Tensor& v_TGH) const {
  const bool is_double = q_TNH.scalar_type() == at::kDouble;
  AttentionOutput output = {
      .out_TNH = at::empty(q_TNH.sizes(), q_TNH.options()),
      .lse_NT = at::empty({q_TNH.size(1), q_TNH.size(0)},
                          q_TNH.options().dtype(is_double ? at::kDouble : at::kFloat))};
  for_each_sequence(cu_seqlens_, [&](std::int64_t begin, std::int64_t length) {
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_first(q_TNH, begin, length), heads_first(k_TGH, begin, length),
        heads_first(v_TGH, begin, length), 0.0, true);
    output.out_TNH.narrow(0, begin, length).copy_(tokens_first(out));
    output.lse_NT.narrow(1, begin, length).copy_(lse.squeeze(0));
  });
  return output;
}

void CpuAttention::backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                            const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                            const AttentionOutput& output, const Gradients& gradients) const {
  for_each_sequence(cu_seqlens_, [&](std::int64_t begin, std::int64_t length) {
    // The kernel reads row sums token by token: S x N in memory.
    const at::Tensor lse_1NS =
        output.lse_NT.narrow(1, begin, length).t().contiguous().t().unsqueeze(0);
    const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_first(grad_out_TNH, begin, length), heads_first(q_TNH, begin, length),
        heads_first(k_TGH, begin, length), heads_first(v_TGH, begin, length),
        heads_first(output.out_TNH, begin, length), lse_1NS, 0.0, true);
    gradients.q_TNH.narrow(0, begin, length).copy_(tokens_first(grad_q));
    gradients.k_TGH.narrow(0, begin, length).copy_(tokens_first(grad_k));
    gradients.v_TGH.narrow(0, begin, length).copy_(tokens_first(grad_v));
  });
}

}  // namespace isochron
