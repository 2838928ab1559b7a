// Flash attention takes packed tokens and fewer key than query heads as they are. It has no fp32;
// the memory-efficient kernel does, but wants as many key heads as query heads, and keeps its row
// sums as spans x heads x (most queries, rounded up). Both align a causal mask with the last key.

#include "isochron/engine/model/attention_cuda.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::int64_t causal_from_bottom_right = 2;  // custom_mask_type of the efficient kernel

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

std::int64_t longest_of(const std::vector<std::int64_t>& starts) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    longest = std::max(longest, starts[i + 1] - starts[i]);
  }
  return longest;
}

// 1 x T x N x H with each key head repeated for its query heads.
at::Tensor repeated(const at::Tensor& heads_TGH, std::int64_t ratio) {
  return heads_TGH.unsqueeze(2)
      .expand({-1, -1, ratio, -1})
      .reshape({1, heads_TGH.size(0), heads_TGH.size(1) * ratio, heads_TGH.size(2)});
}

at::Tensor added_up(const at::Tensor& heads_1TNH, std::int64_t ratio) {
  const auto sizes = heads_1TNH.sizes();
  return heads_1TNH.view({sizes[1], sizes[2] / ratio, ratio, sizes[3]}).sum(2);
}

}  // namespace

CudaAttention::CudaAttention(const AttentionSpans& spans, at::Device device)
    : cu_queries_(at::tensor(spans.cu_queries, at::kInt).to(device)),
      cu_keys_(at::tensor(spans.cu_keys, at::kInt).to(device)),
      most_queries_(longest_of(spans.cu_queries)),
      most_keys_(longest_of(spans.cu_keys)) {}

AttentionOutput CudaAttention::forward(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                                       const at::Tensor& v_SGH) const {
  if (is_half(q_TNH)) {
    const auto result =
        at::_flash_attention_forward(q_TNH, k_SGH, v_SGH, cu_queries_, cu_keys_, most_queries_,
                                     most_keys_, 0.0, /*is_causal=*/true, false);
    return {.out_TNH = std::get<0>(result), .lse_NT = std::get<1>(result)};
  }
  require(q_TNH.scalar_type() == at::kFloat, "attention",
          "the dtype on CUDA is {}, must be bf16, fp16 or fp32",
          c10::toString(q_TNH.scalar_type()));
  const std::int64_t ratio = q_TNH.size(1) / k_SGH.size(1);
  const auto result = at::_efficient_attention_forward(
      q_TNH.unsqueeze(0), repeated(k_SGH, ratio), repeated(v_SGH, ratio), {}, cu_queries_, cu_keys_,
      most_queries_, most_keys_, 0.0, causal_from_bottom_right, /*compute_log_sumexp=*/true);
  return {.out_TNH = std::get<0>(result).squeeze(0), .lse_NT = std::get<1>(result)};
}

void CudaAttention::backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                             const at::Tensor& k_SGH, const at::Tensor& v_SGH,
                             const AttentionOutput& output, const Gradients& gradients) const {
  // Dropout is 0: the state of its generator is not read.
  const at::Tensor no_random_state = at::empty({2}, q_TNH.options().dtype(at::kUInt64));
  if (is_half(q_TNH)) {
    const auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
        grad_out_TNH, q_TNH, k_SGH, v_SGH, output.out_TNH, output.lse_NT, cu_queries_, cu_keys_,
        most_queries_, most_keys_, 0.0, /*is_causal=*/true, no_random_state,
        at::empty({}, no_random_state.options()));
    gradients.q_TNH.copy_(grad_q);
    gradients.k_SGH.copy_(grad_k);
    gradients.v_SGH.copy_(grad_v);
    return;
  }
  const std::int64_t ratio = q_TNH.size(1) / k_SGH.size(1);
  const at::Tensor no_seed = at::zeros({}, q_TNH.options().dtype(at::kLong));
  const auto result = at::_efficient_attention_backward(
      grad_out_TNH.unsqueeze(0), q_TNH.unsqueeze(0), repeated(k_SGH, ratio), repeated(v_SGH, ratio),
      {}, output.out_TNH.unsqueeze(0), cu_queries_, cu_keys_, most_queries_, most_keys_,
      output.lse_NT, 0.0, no_seed, no_seed, causal_from_bottom_right, /*bias_requires_grad=*/false);
  gradients.q_TNH.copy_(std::get<0>(result).squeeze(0));
  gradients.k_SGH.copy_(added_up(std::get<1>(result), ratio));
  gradients.v_SGH.copy_(added_up(std::get<2>(result), ratio));
}

}  // namespace isochron
