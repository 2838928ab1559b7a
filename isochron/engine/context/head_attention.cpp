// Tensors that travel together are cut by heads into one part for each rank and laid side by side,
// so that a single exchange takes them:
//
//   forward    q, k, v out; result back
//   backward   q, k, v, result, its gradient out; gradients of q, k, v back
//
// Row sums stay where they were computed.

#include "isochron/engine/context/head_attention.h"

#include <ATen/ATen.h>

#include "isochron/core/require.h"
#include "isochron/layout/packed_layout.h"

namespace isochron {

namespace {

std::int64_t total_heads(const std::vector<at::Tensor>& tensors) {
  std::int64_t total = 0;
  for (const at::Tensor& tensor : tensors) total += tensor.size(1);
  return total;
}

}  // namespace

HeadAttention::HeadAttention(std::span<const std::int32_t> cu_seqlens, Communicator& group,
                             at::Device device)
    : group_(group),
      order_(at::tensor(shard_order(cu_seqlens, group.size()), at::kLong).to(device)) {
  const std::vector<std::int64_t> starts(cu_seqlens.begin(), cu_seqlens.end());
  local_ = local_attention({.cu_queries = starts, .cu_keys = starts}, device);
}

std::vector<at::Tensor> HeadAttention::tokens_for_heads(const std::vector<at::Tensor>& held) const {
  const std::int64_t size = group_.size();
  const std::int64_t num_held = held.front().size(0);
  const std::int64_t head_dim = held.front().size(2);
  at::Tensor sent =
      at::empty({size, num_held, total_heads(held) / size, head_dim}, held.front().options());
  std::int64_t first = 0;
  for (const at::Tensor& tensor : held) {
    const std::int64_t share = tensor.size(1) / size;
    sent.narrow(2, first, share).copy_(tensor.unflatten(1, {size, share}).transpose(0, 1));
    first += share;
  }
  at::Tensor received = at::empty_like(sent);
  group_.all_to_all(received, sent, "exchange tokens for heads")->wait();
  const at::Tensor ordered = received.flatten(0, 1).index_select(0, order_);
  std::vector<at::Tensor> whole;
  first = 0;
  for (const at::Tensor& tensor : held) {
    const std::int64_t share = tensor.size(1) / size;
    whole.push_back(ordered.narrow(1, first, share));
    first += share;
  }
  return whole;
}

void HeadAttention::heads_for_tokens(const std::vector<at::Tensor>& whole,
                                     const std::vector<at::Tensor>& held) const {
  const std::int64_t size = group_.size();
  const std::int64_t num_held = held.front().size(0);
  const std::int64_t head_dim = held.front().size(2);
  const std::int64_t num_heads = total_heads(whole);
  at::Tensor sent = at::empty({size * num_held, num_heads, head_dim}, whole.front().options());
  std::int64_t first = 0;
  for (const at::Tensor& tensor : whole) {
    sent.narrow(1, first, tensor.size(1)).index_copy_(0, order_, tensor);
    first += tensor.size(1);
  }
  at::Tensor received = at::empty({size, num_held, num_heads, head_dim}, sent.options());
  group_.all_to_all(received, sent, "exchange heads for tokens")->wait();
  first = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const std::int64_t share = whole[i].size(1);
    held[i].unflatten(1, {size, share}).copy_(received.narrow(2, first, share).transpose(0, 1));
    first += share;
  }
}

AttentionOutput HeadAttention::forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                       const at::Tensor& v_TGH) const {
  require(k_TGH.size(1) % group_.size() == 0, "attention",
          "a group of {} ranks cannot share {} key and value heads: its size must divide them",
          group_.size(), k_TGH.size(1));
  const std::vector<at::Tensor> whole = tokens_for_heads({q_TNH, k_TGH, v_TGH});
  AttentionOutput output = local_->forward(whole[0], whole[1], whole[2]);
  at::Tensor out_TNH = at::empty(q_TNH.sizes(), q_TNH.options());
  heads_for_tokens({output.out_TNH}, {out_TNH});
  output.out_TNH = std::move(out_TNH);
  return output;
}

void HeadAttention::backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                             const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                             const AttentionOutput& output, const Gradients& gradients) const {
  const std::vector<at::Tensor> whole =
      tokens_for_heads({q_TNH, k_TGH, v_TGH, output.out_TNH, grad_out_TNH});
  const Gradients grads = {.q_TNH = at::empty_like(whole[0]),
                           .k_SGH = at::empty_like(whole[1]),
                           .v_SGH = at::empty_like(whole[2])};
  local_->backward(whole[4], whole[0], whole[1], whole[2],
                   {.out_TNH = whole[3], .lse_NT = output.lse_NT}, grads);
  heads_for_tokens({grads.q_TNH, grads.k_SGH, grads.v_SGH},
                   {gradients.q_TNH, gradients.k_SGH, gradients.v_SGH});
}

}  // namespace isochron
