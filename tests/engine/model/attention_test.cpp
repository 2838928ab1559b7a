#include "isochron/engine/model/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "tests/engine/support/closeness.h"
#include "tests/engine/support/cpu_memory.h"

namespace isochron {
namespace {

// Attention as a textbook has it: scores, mask, softmax.
at::Tensor plain_attention(const at::Tensor& q_TNH, const at::Tensor& k_SGH,
                           const at::Tensor& v_SGH, const AttentionSpans& spans) {
  const std::int64_t ratio = q_TNH.size(1) / k_SGH.size(1);
  std::vector<at::Tensor> outs;
  for (std::size_t i = 0; i + 1 < spans.cu_queries.size(); ++i) {
    const std::int64_t queries = spans.cu_queries[i + 1] - spans.cu_queries[i];
    const std::int64_t keys = spans.cu_keys[i + 1] - spans.cu_keys[i];
    const auto of_span = [&](const at::Tensor& heads, std::int64_t begin, std::int64_t count) {
      return heads.narrow(0, begin, count).transpose(0, 1);
    };
    const at::Tensor k = of_span(k_SGH, spans.cu_keys[i], keys).repeat_interleave(ratio, 0);
    const at::Tensor v = of_span(v_SGH, spans.cu_keys[i], keys).repeat_interleave(ratio, 0);
    const at::Tensor q = of_span(q_TNH, spans.cu_queries[i], queries);
    at::Tensor scores =
        at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(q_TNH.size(2)));
    const at::Tensor hidden = at::ones({queries, keys}, at::kBool).triu(keys - queries + 1);
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    outs.push_back(at::matmul(scores.softmax(-1), v).transpose(0, 1));
  }
  return at::cat(outs);
}

AttentionSpans random_spans(Random& random) {
  AttentionSpans spans = {.cu_queries = {0}, .cu_keys = {0}};
  const std::int64_t count = random.between(1, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t queries = random.between(2, 40);
    const std::int64_t before = random.below(3) == 0 ? 0 : random.between(1, 60);
    spans.cu_queries.push_back(spans.cu_queries.back() + queries);
    spans.cu_keys.push_back(spans.cu_keys.back() + before + queries);
  }
  return spans;
}

TEST(LocalAttention, QueriesSeeTheirOwnKeyAndAllBeforeItInTheirSpan) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const AttentionSpans spans = random_spans(random);
    const std::int64_t kv_heads = random.between(1, 3);
    const std::int64_t heads = kv_heads * random.between(1, 3);
    const std::int64_t head_dim = random.between(1, 9);
    const auto heads_of = [&](std::int64_t tokens, std::int64_t count) {
      return at::randn({tokens, count, head_dim}, at::kDouble);
    };
    const at::Tensor q = heads_of(spans.cu_queries.back(), heads).requires_grad_();
    const at::Tensor k = heads_of(spans.cu_keys.back(), kv_heads).requires_grad_();
    const at::Tensor v = heads_of(spans.cu_keys.back(), kv_heads).requires_grad_();
    const at::Tensor grad_out = at::randn_like(q);
    const at::Tensor expected = plain_attention(q, k, v, spans);
    expected.backward(grad_out);

    const at::NoGradGuard no_grad;
    const auto attention = local_attention(spans, at::kCPU);
    const AttentionOutput output = attention->forward(q, k, v);
    EXPECT_LE(relative_difference(output.out_TNH, expected), 1e-12);
    const Attention::Gradients gradients = {
        .q_TNH = at::empty_like(q), .k_SGH = at::empty_like(k), .v_SGH = at::empty_like(v)};
    attention->backward(grad_out, q, k, v, output, gradients);
    EXPECT_LE(relative_difference(gradients.q_TNH, q.grad()), 1e-12);
    EXPECT_LE(relative_difference(gradients.k_SGH, k.grad()), 1e-12);
    EXPECT_LE(relative_difference(gradients.v_SGH, v.grad()), 1e-12);
  }
}

// 2048 queries that see 16384 keys: their scores would be 128 MiB a head.
TEST(LocalAttention, MakesNoTensorOfQueriesTimesKeys) {
  const AttentionSpans spans = {.cu_queries = {0, 2048}, .cu_keys = {0, 16384}};
  const at::Tensor q = at::randn({2048, 2, 8});
  const at::Tensor k = at::randn({16384, 1, 8});
  const at::Tensor v = at::randn({16384, 1, 8});
  const auto attention = local_attention(spans, at::kCPU);
  const CpuMemory memory;
  const AttentionOutput output = attention->forward(q, k, v);
  const Attention::Gradients gradients = {
      .q_TNH = at::empty_like(q), .k_SGH = at::empty_like(k), .v_SGH = at::empty_like(v)};
  attention->backward(at::randn_like(q), q, k, v, output, gradients);
  EXPECT_LT(memory.peak(), std::int64_t{16} << 20);
}

}  // namespace
}  // namespace isochron
