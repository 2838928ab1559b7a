// Every rank holds its shards of sequences that all of them know, and compares with attention over
// the whole ones.

#include "isochron/engine/context/context_attention.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isochron/core/random.h"
#include "isochron/layout/packed_layout.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using testing::HasSubstr;

struct Heads {
  at::Tensor q, k, v, grad_out;
};

// Those of the tokens at `source`; padding is noise in q, k, v and has no gradient.
Heads held_of(const Heads& whole, const std::vector<std::int64_t>& source) {
  const at::Tensor index = at::tensor(source, at::kLong);
  const at::Tensor is_padding = (index < 0).view({-1, 1, 1});
  const auto held = [&](const at::Tensor& values, double padding) {
    return values.index_select(0, index.clamp_min(0)).masked_fill(is_padding, padding);
  };
  return {held(whole.q, 0.3), held(whole.k, -0.4), held(whole.v, 0.5), held(whole.grad_out, 0)};
}

// The largest difference between what a rank holds and the values of the whole sequences. Absolute:
// inputs are around 1, and the gradient of q is nothing but noise where a query sees one key.
double shard_difference(const at::Tensor& held, const at::Tensor& whole,
                        const std::vector<std::int64_t>& source) {
  const at::Tensor index = at::tensor(source, at::kLong);
  const at::Tensor is_padding = (index < 0).view({-1, 1, 1});
  return (held - whole.index_select(0, index.clamp_min(0)))
      .masked_fill(is_padding, 0)
      .abs()
      .max()
      .item<double>();
}

void compare(Communicator& group, ContextKind exchange, Random& random, std::int64_t kv_heads,
             const ContextOptions& options) {
  const std::int64_t heads = kv_heads * random.between(1, 3);
  const std::int64_t head_dim = random.between(1, 8);
  std::vector<Tokens> lengths(static_cast<std::size_t>(random.between(1, 4)));
  for (Tokens& length : lengths) {
    // Some shorter than the 2c chunks they are cut into.
    length = random.below(3) == 0 ? random.between(1, 2 * group.size()) : random.between(1, 90);
  }
  std::vector<std::int64_t> starts = {0};
  for (const Tokens length : lengths) starts.push_back(starts.back() + length);
  at::manual_seed(random.below(1'000'000));  // the same on every rank
  const auto noise = [&](std::int64_t count) {
    return at::randn({starts.back(), count, head_dim}, at::kDouble);
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
  const Heads held = held_of(whole, layout.source);
  const auto attention = context_attention(exchange, layout.cu_seqlens, group, at::kCPU, options);
  const AttentionOutput output = attention->forward(held.q, held.k, held.v);
  EXPECT_LE(shard_difference(output.out_TNH, expected.out_TNH, layout.source), 1e-12);

  // Slices of one tensor, as a layer has them.
  const at::Tensor joined =
      at::empty({held.q.size(0), heads + 2 * kv_heads, head_dim}, at::kDouble);
  const Attention::Gradients gradients = {.q_TNH = joined.narrow(1, 0, heads),
                                          .k_SGH = joined.narrow(1, heads, kv_heads),
                                          .v_SGH = joined.narrow(1, heads + kv_heads, kv_heads)};
  attention->backward(held.grad_out, held.q, held.k, held.v, output, gradients);
  EXPECT_LE(shard_difference(gradients.q_TNH, expected_gradients.q_TNH, layout.source), 1e-12);
  EXPECT_LE(shard_difference(gradients.k_SGH, expected_gradients.k_SGH, layout.source), 1e-12);
  EXPECT_LE(shard_difference(gradients.v_SGH, expected_gradients.v_SGH, layout.source), 1e-12);
}

void compare_gathered(World& world) {
  Communicator& group = world.group(0, world.place().size);
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", ranks " << group.size());
    const std::int64_t kv_heads = random.between(1, 4);
    // All heads at once, or one or two at a time.
    compare(group, ContextKind::all_gather_kv, random, kv_heads,
            {.gather_bytes = random.below(2) == 0 ? 1 << 20 : 20'000});
  }
}

void compare_exchanged(World& world) {
  Communicator& group = world.group(0, world.place().size);
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", ranks " << group.size());
    const std::int64_t kv_heads = group.size() * random.between(1, 2);
    compare(group, ContextKind::all_to_all, random, kv_heads, {});
  }
}

TEST(GatheredAttention, EqualsWholeSequencesOnTwoRanks) { run_ranks(2, compare_gathered); }
TEST(GatheredAttention, EqualsWholeSequencesOnThreeRanks) { run_ranks(3, compare_gathered); }
TEST(GatheredAttention, EqualsWholeSequencesOnSixRanks) { run_ranks(6, compare_gathered); }
TEST(HeadAttention, EqualsWholeSequencesOnTwoRanks) { run_ranks(2, compare_exchanged); }
TEST(HeadAttention, EqualsWholeSequencesOnThreeRanks) { run_ranks(3, compare_exchanged); }
TEST(HeadAttention, EqualsWholeSequencesOnFiveRanks) { run_ranks(5, compare_exchanged); }

TEST(HeadAttention, ASizeThatDoesNotDivideTheHeadsIsNamed) {
  run_ranks(2, [](World& world) {
    const PackedLayout layout = packed_layout(
        std::vector<Tokens>{8}, {.context_size = 2, .context_rank = world.place().rank});
    const auto attention =
        context_attention(ContextKind::all_to_all, layout.cu_seqlens, world.group(0, 2), at::kCPU);
    const at::Tensor q = at::randn({4, 6, 2});
    const at::Tensor k = at::randn({4, 3, 2});
    try {
      (void)attention->forward(q, k, k);
      FAIL();
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("a group of 2 ranks cannot share 3 key and value heads"));
    }
  });
}

}  // namespace
}  // namespace isochron
