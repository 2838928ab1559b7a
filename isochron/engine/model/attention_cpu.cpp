// The kernel takes heads of any stride and fewer key than query heads, so slices of the packed
// tensor go in as they are. Its results are tokens first again, and are copied into their place.
//
// Its causal mask is aligned with the first key. So where a span has keys before those of its
// queries, the queries see two blocks: all of the keys before, and their own causally. Each block
// gives the softmax over its own keys; with the row sums l1, l2 of both, l = log(e^l1 + e^l2), the
// whole is out1 * e^(l1-l) + out2 * e^(l2-l). The backward of a block takes the row sums and the
// result of the whole, and the gradients of q add up.

#include "isochron/engine/model/attention_cpu.h"

#include <ATen/ATen.h>

namespace isochron {

namespace {

// Where the queries of a span lie, and its keys: `num_before` that all of them see, and one for
// each.
struct Span {
  std::int64_t first_query = 0;
  std::int64_t num_queries = 0;
  std::int64_t first_key = 0;
  std::int64_t num_before = 0;

  [[nodiscard]] std::int64_t first_own() const { return first_key + num_before; }
};

// S x N x H of consecutive tokens as the kernel wants it, 1 x N x S x H, without a copy.
at::Tensor heads_first(const at::Tensor& packed_TNH, std::int64_t begin, std::int64_t length) {
  return packed_TNH.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& result_1NSH) {
  return result_1NSH.squeeze(0).transpose(0, 1);
}

template <class Visit>
void for_each_span(const AttentionSpans& spans, Visit visit) {
  for (std::size_t i = 0; i + 1 < spans.cu_queries.size(); ++i) {
    const std::int64_t num_queries = spans.cu_queries[i + 1] - spans.cu_queries[i];
    const std::int64_t num_keys = spans.cu_keys[i + 1] - spans.cu_keys[i];
    if (num_queries == 0) continue;
    visit(Span{.first_query = spans.cu_queries[i],
               .num_queries = num_queries,
               .first_key = spans.cu_keys[i],
               .num_before = num_keys - num_queries});
  }
}

// 1 x N x S x H and 1 x N x S of one block.
struct Block {
  at::Tensor out, lse;
};

Block merged(const Block& one, const Block& other) {
  const at::Tensor lse = at::logaddexp(one.lse, other.lse);
  const auto share = [&](const Block& block) {
    return block.out * (block.lse - lse).exp_().unsqueeze(-1);
  };
  return {.out = share(one).add_(share(other)), .lse = lse};
}

}  // namespace

CpuAttention::CpuAttention(AttentionSpans spans) : spans_(std::move(spans)) {}

AttentionOutput CpuAttention::forward(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                                      const at::Tensor& v_SGH) const {
  const bool is_double = q_TNH.scalar_type() == at::kDouble;
  AttentionOutput output = {
      .out_TNH = at::empty(q_TNH.sizes(), q_TNH.options()),
      .lse_NT = at::empty({q_TNH.size(1), q_TNH.size(0)},
                          q_TNH.options().dtype(is_double ? at::kDouble : at::kFloat))};
  for_each_span(spans_, [&](const Span& span) {
    const at::Tensor q = heads_first(q_TNH, span.first_query, span.num_queries);
    const auto block = [&](std::int64_t first, std::int64_t count, bool is_causal) {
      auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
          q, heads_first(k_SGH, first, count), heads_first(v_SGH, first, count), 0.0, is_causal);
      return Block{std::move(out), std::move(lse)};
    };
    Block result = block(span.first_own(), span.num_queries, true);
    if (span.num_before > 0) result = merged(result, block(span.first_key, span.num_before, false));
    output.out_TNH.narrow(0, span.first_query, span.num_queries).copy_(tokens_first(result.out));
    output.lse_NT.narrow(1, span.first_query, span.num_queries).copy_(result.lse.squeeze(0));
  });
  return output;
}

void CpuAttention::backward(const at::Tensor& grad_out_TNH, const at::Tensor& q_TNH,
                            const at::Tensor& k_SGH, const at::Tensor& v_SGH,
                            const AttentionOutput& output, const Gradients& gradients) const {
  for_each_span(spans_, [&](const Span& span) {
    const auto queries = [&](const at::Tensor& packed_TNH) {
      return heads_first(packed_TNH, span.first_query, span.num_queries);
    };
    // The kernel reads row sums token by token: S x N in memory.
    const at::Tensor lse_1NS = output.lse_NT.narrow(1, span.first_query, span.num_queries)
                                   .t()
                                   .contiguous()
                                   .t()
                                   .unsqueeze(0);
    // Returns the gradient of q.
    const auto block = [&](std::int64_t first, std::int64_t count, bool is_causal) {
      const auto [grad_q, grad_k, grad_v] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(
              queries(grad_out_TNH), queries(q_TNH), heads_first(k_SGH, first, count),
              heads_first(v_SGH, first, count), queries(output.out_TNH), lse_1NS, 0.0, is_causal);
      gradients.k_SGH.narrow(0, first, count).copy_(tokens_first(grad_k));
      gradients.v_SGH.narrow(0, first, count).copy_(tokens_first(grad_v));
      return tokens_first(grad_q);
    };
    const at::Tensor grad_q = gradients.q_TNH.narrow(0, span.first_query, span.num_queries);
    grad_q.copy_(block(span.first_own(), span.num_queries, true));
    if (span.num_before > 0) grad_q.add_(block(span.first_key, span.num_before, false));
  });
}

}  // namespace isochron
