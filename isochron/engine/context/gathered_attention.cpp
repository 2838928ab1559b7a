// A rank holds two chunks of each sequence. The queries of a chunk see its own keys causally and
// all keys before it: a span whose last keys are those of the queries, which is what a local
// attention computes. So: gather the keys and values of the group, pick those of the two spans of
// each sequence, in order (a key before the earlier chunk is in both), and compute. Padding stands
// behind the last token of a sequence, where no real query looks.
//
//   forward    gather -> pick -> local forward
//   backward   gather -> pick -> local backward -> put back, adding -> sum over the ranks
//
// for some heads at a time, with the gather of the next under way, and in the backward the sum of
// the ones before.

#include "isochron/engine/context/gathered_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "isochron/layout/packed_layout.h"

namespace isochron {

struct GatheredAttention::Heads {
  std::int64_t first_kv = 0;
  std::int64_t num_kv = 0;
  std::int64_t ratio = 1;  // query heads for each

  [[nodiscard]] at::Tensor of_queries(const at::Tensor& heads_TNH) const {
    return heads_TNH.narrow(1, first_kv * ratio, num_kv * ratio);
  }
  [[nodiscard]] at::Tensor of_keys(const at::Tensor& heads_TGH) const {
    return heads_TGH.narrow(1, first_kv, num_kv);
  }
  // Row sums have their heads in the last dimension but one, whatever else a kernel adds.
  [[nodiscard]] at::Tensor of_row_sums(const at::Tensor& lse) const {
    return lse.narrow(-2, first_kv * ratio, num_kv * ratio).contiguous();
  }
};

struct GatheredAttention::Gather {
  at::Tensor all;  // (ranks * T) x 2 x G x H
  std::unique_ptr<Pending> pending;
};

namespace {

// Which keys the queries of a rank see.
struct Seen {
  AttentionSpans spans;
  std::vector<std::int64_t> keys;  // in the gathered tokens
};

Seen seen_by(std::int64_t rank, std::int64_t size, std::span<const std::int32_t> cu_seqlens) {
  const std::vector<std::int64_t> order = shard_order(cu_seqlens, static_cast<std::int32_t>(size));
  Seen seen = {.spans = {.cu_queries = {0}, .cu_keys = {0}}, .keys = {}};
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const std::int64_t chunk_size = (cu_seqlens[i + 1] - cu_seqlens[i]) / (2 * size);
    for (const std::int64_t chunk : {rank, 2 * size - 1 - rank}) {
      const auto begin = order.begin() + cu_seqlens[i];
      seen.keys.insert(seen.keys.end(), begin, begin + (chunk + 1) * chunk_size);
      seen.spans.cu_queries.push_back(seen.spans.cu_queries.back() + chunk_size);
      seen.spans.cu_keys.push_back(static_cast<std::int64_t>(seen.keys.size()));
    }
  }
  return seen;
}

}  // namespace

GatheredAttention::GatheredAttention(std::span<const std::int32_t> cu_seqlens, Communicator& group,
                                     at::Device device, const ContextOptions& options)
    : group_(group), options_(options) {
  const Seen seen = seen_by(group.rank(), group.size(), cu_seqlens);
  seen_S_ = at::tensor(seen.keys, at::kLong).to(device);
  local_ = local_attention(seen.spans, device);
}

std::vector<GatheredAttention::Heads> GatheredAttention::head_parts(const at::Tensor& q_TNH,
                                                                    const at::Tensor& k_TGH) const {
  const std::int64_t num_kv = k_TGH.size(1);
  const std::int64_t bytes_per_head =
      2 * group_.size() * k_TGH.size(0) * k_TGH.size(2) * k_TGH.element_size();
  const std::int64_t most = std::clamp<std::int64_t>(
      options_.gather_bytes / std::max<std::int64_t>(bytes_per_head, 1), 1, num_kv);
  std::vector<Heads> parts;
  for (std::int64_t first = 0; first < num_kv; first += most) {
    parts.push_back({.first_kv = first,
                     .num_kv = std::min(most, num_kv - first),
                     .ratio = q_TNH.size(1) / num_kv});
  }
  return parts;
}

GatheredAttention::Gather GatheredAttention::start_gather(const at::Tensor& k_TGH,
                                                          const at::Tensor& v_TGH,
                                                          const Heads& heads) const {
  const std::int64_t num_held = k_TGH.size(0);
  Gather gather;
  gather.all =
      at::empty({group_.size() * num_held, 2, heads.num_kv, k_TGH.size(2)}, k_TGH.options());
  const at::Tensor own = gather.all.narrow(0, group_.rank() * num_held, num_held);
  own.select(1, 0).copy_(heads.of_keys(k_TGH));
  own.select(1, 1).copy_(heads.of_keys(v_TGH));
  gather.pending = group_.all_gather(gather.all, "gather keys and values");
  return gather;
}

at::Tensor GatheredAttention::finish_gather(Gather gather) const {
  gather.pending->wait();
  return gather.all.index_select(0, seen_S_);
}

// Calls compute(heads, keys and values) for all heads in order.
template <class Compute>
void GatheredAttention::for_each_part(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                      const at::Tensor& v_TGH, Compute compute) const {
  const std::vector<Heads> parts = head_parts(q_TNH, k_TGH);
  Gather next = start_gather(k_TGH, v_TGH, parts.front());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor kv_S2GH = finish_gather(std::move(next));
    if (i + 1 < parts.size()) next = start_gather(k_TGH, v_TGH, parts[i + 1]);
    compute(parts[i], kv_S2GH);
  }
}

AttentionOutput GatheredAttention::forward(const at::Tensor& q_TNH, const at::Tensor& k_TGH,
                                           const at::Tensor& v_TGH) const {
  std::vector<at::Tensor> outs;
  std::vector<at::Tensor> row_sums;
  for_each_part(q_TNH, k_TGH, v_TGH, [&](const Heads& heads, const at::Tensor& kv_S2GH) {
    AttentionOutput part =
        local_->forward(heads.of_queries(q_TNH), kv_S2GH.select(1, 0), kv_S2GH.select(1, 1));
    outs.push_back(std::move(part.out_TNH));
    row_sums.push_back(std::move(part.lse_NT));
  });
  if (outs.size() == 1) return {.out_TNH = outs.front(), .lse_NT = row_sums.front()};
  return {.out_TNH = at::cat(outs, 1), .lse_NT = at::cat(row_sums, -2)};
}

void GatheredAttention::backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                                 const at::Tensor& k_TGH, const at::Tensor& v_TGH,
                                 const AttentionOutput& output, const Gradients& gradients) const {
  // Gradients of keys and values on their way to the ranks that hold them.
  struct Sum {
    Heads heads;
    at::Tensor all, own;
    std::unique_ptr<Pending> pending;
  };
  const auto finish = [&](Sum sum) {
    if (!sum.pending) return;
    sum.pending->wait();
    sum.heads.of_keys(gradients.k_SGH).copy_(sum.own.select(1, 0));
    sum.heads.of_keys(gradients.v_SGH).copy_(sum.own.select(1, 1));
  };

  Sum last;
  for_each_part(q_TNH, k_TGH, v_TGH, [&](const Heads& heads, const at::Tensor& kv_S2GH) {
    const at::Tensor grad_kv_S2GH = at::empty_like(kv_S2GH);
    local_->backward(
        heads.of_queries(grad_out_TNH), heads.of_queries(q_TNH), kv_S2GH.select(1, 0),
        kv_S2GH.select(1, 1),
        {.out_TNH = heads.of_queries(output.out_TNH), .lse_NT = heads.of_row_sums(output.lse_NT)},
        {.q_TNH = heads.of_queries(gradients.q_TNH),
         .k_SGH = grad_kv_S2GH.select(1, 0),
         .v_SGH = grad_kv_S2GH.select(1, 1)});
    const std::int64_t num_held = k_TGH.size(0);
    Sum sum = {.heads = heads, .all = {}, .own = {}, .pending = {}};
    sum.all =
        at::zeros({group_.size() * num_held, 2, heads.num_kv, k_TGH.size(2)}, kv_S2GH.options());
    sum.all.index_add_(0, seen_S_, grad_kv_S2GH);
    sum.own = sum.all.narrow(0, group_.rank() * num_held, num_held);
    sum.pending = group_.reduce_scatter_sum(sum.own, sum.all, "sum gradients of keys and values");
    finish(std::exchange(last, std::move(sum)));
  });
  finish(std::move(last));
}

}  // namespace isochron
