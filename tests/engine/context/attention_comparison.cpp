#include "tests/engine/context/attention_comparison.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "isochron/layout/packed_layout.h"

namespace isochron {

namespace {

struct Heads {
  at::Tensor q, k, v, grad_out;
};

// Those of the tokens at `source`; padding is noise in q, k, v and has no gradient.
Heads held_of(const Heads& whole, const std::vector<std::int64_t>& source,
              const AttentionCase& given) {
  const at::Tensor index = at::tensor(source, at::kLong);
  const at::Tensor is_padding = (index < 0).view({-1, 1, 1});
  const auto held = [&](const at::Tensor& values, double padding) {
    return values.index_select(0, index.clamp_min(0))
        .masked_fill(is_padding, padding)
        .to(given.device, given.dtype);
  };
  return {held(whole.q, 0.3), held(whole.k, -0.4), held(whole.v, 0.5), held(whole.grad_out, 0)};
}

// The largest difference between what a rank holds and the values of the whole sequences. Absolute:
// inputs are around 1, and the gradient of q is nothing but noise where a query sees one key.
double shard_difference(const at::Tensor& held, const at::Tensor& whole,
                        const std::vector<std::int64_t>& source) {
  const at::Tensor index = at::tensor(source, at::kLong);
  const at::Tensor is_padding = (index < 0).view({-1, 1, 1});
  return (held.to(at::kCPU, at::kDouble) - whole.index_select(0, index.clamp_min(0)))
      .masked_fill(is_padding, 0)
      .abs()
      .max()
      .item<double>();
}

}  // namespace

void compare_with_whole_sequences(Communicator& group, Random& random, const AttentionCase& given) {
  const std::int64_t kv_heads = given.kv_heads;
  const std::int64_t heads = kv_heads * random.between(1, 3);
  std::vector<Tokens> lengths(static_cast<std::size_t>(random.between(1, 4)));
  for (Tokens& length : lengths) {
    // Some shorter than the 2c chunks they are cut into.
    length = random.below(3) == 0 ? random.between(1, 2 * group.size())
                                  : random.between(1, given.longest);
  }
  std::vector<std::int64_t> starts = {0};
  for (const Tokens length : lengths) starts.push_back(starts.back() + length);
  at::manual_seed(random.below(1'000'000));  // the same on every rank
  const auto noise = [&](std::int64_t count) {
    // What the given type can hold, so that both start from the same.
    return at::randn({starts.back(), count, given.head_dim}).to(given.dtype).to(at::kDouble);
  };
  const Heads whole = {noise(heads), noise(kv_heads), noise(kv_heads), noise(heads)};
  const auto reference = local_attention({.cu_queries = starts, .cu_keys = starts}, at::kCPU);
  const AttentionOutput expected = reference->forward(whole.q, whole.k, whole.v);
  const Attention::Gradients expected_gradients = {.q_TNH = at::empty_like(whole.q),
                                                   .k_SGH = at::empty_like(whole.k),
                                                   .v_SGH = at::empty_like(whole.v)};
  reference->backward(whole.grad_out, whole.q, whole.k, whole.v, expected, expected_gradients);

  const PackedLayout layout =
      packed_layout(lengths, {.context_size = group.size(), .context_rank = group.rank()});
  const Heads held = held_of(whole, layout.source, given);
  const auto attention =
      context_attention(given.exchange, layout.cu_seqlens, group, given.device, given.options);
  const AttentionOutput output = attention->forward(held.q, held.k, held.v);
  EXPECT_LE(shard_difference(output.out_TNH, expected.out_TNH, layout.source), given.tolerance);

  // Slices of one tensor, as a layer has them.
  const at::Tensor joined =
      at::empty({held.q.size(0), heads + 2 * kv_heads, given.head_dim}, held.q.options());
  const Attention::Gradients gradients = {.q_TNH = joined.narrow(1, 0, heads),
                                          .k_SGH = joined.narrow(1, heads, kv_heads),
                                          .v_SGH = joined.narrow(1, heads + kv_heads, kv_heads)};
  attention->backward(held.grad_out, held.q, held.k, held.v, output, gradients);
  EXPECT_LE(shard_difference(gradients.q_TNH, expected_gradients.q_TNH, layout.source),
            given.tolerance);
  EXPECT_LE(shard_difference(gradients.k_SGH, expected_gradients.k_SGH, layout.source),
            given.tolerance);
  EXPECT_LE(shard_difference(gradients.v_SGH, expected_gradients.v_SGH, layout.source),
            given.tolerance);
}

}  // namespace isochron
