#include "isochron/cost/memory.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

TEST(Memory, OfActivationsFollowsWhatIsRecomputed) {
  const ModelShape shape = model_preset("llama-3-8b");
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::none), 4'456'448);  // 34 * 4096 * 32
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::selective), (30 * 4096 - 2 * 14336) * 32);
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::full), 2 * 4096 * 32);
}

TEST(Memory, OfActivationsCountsTheExpertsOfAToken) {
  ModelShape shape = model_preset("llama-3-8b");
  shape.sparse_layers = 12;
  shape.num_experts = 8;
  shape.experts_per_token = 2;
  shape.moe_ffn = 1000;
  shape.shared_ffn = 500;
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::selective),
            20 * (30 * 4096 - 2 * 14336) + 12 * (30 * 4096 - 2 * 2500));
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::none), 34 * 4096 * 32);
}

TEST(Memory, OfActivationsNeverFallsBelowTheInputOfALayer) {
  ModelShape shape = model_preset("llama-3-8b");
  shape.ffn = 20 * 4096;
  EXPECT_EQ(activation_bytes_per_token(shape, Recompute::selective),
            activation_bytes_per_token(shape, Recompute::full));
}

TEST(Memory, OfStatesIsEighteenBytesUnlessTheOptimizerIsSharded) {
  EXPECT_EQ(state_bytes(1000), 18'000);
  EXPECT_EQ(state_bytes(1000, 8), 7'500);
  EXPECT_EQ(state_bytes(1, 5), 6 + 3);  // the largest shard: 12 / 5 rounded up
  EXPECT_EQ(state_bytes(0, 5), 0);
  EXPECT_EQ(state_bytes(std::int64_t{1} << 56), 18 * (std::int64_t{1} << 56));
  EXPECT_EQ(message_of([] { (void)state_bytes(1, 0); }),
            "[memory] optimizer_shards is 0, must be at least 1");
  EXPECT_EQ(message_of([] { (void)state_bytes(-1); }),
            "[memory] parameters is -1, must be an integer from 0 to 2^56");
}

TEST(Memory, OfLogitsGrowsWithTheChunk) {
  const ModelShape shape = model_preset("llama-3-8b");
  EXPECT_EQ(logits_bytes(shape, 1024), 4 * 1024 * (4096 + 128256));
  EXPECT_EQ(logits_bytes(shape, 1024, 8), 512 * (4096 + 128256));
  EXPECT_EQ(logits_bytes(shape, 0), 0);
  EXPECT_EQ(message_of([&] { (void)logits_bytes(shape, 1, 0); }),
            "[memory] tensor_parallel is 0, must be at least 1");
  EXPECT_EQ(message_of([&] { (void)logits_bytes(shape, -1); }),
            "[memory] tokens is -1, must be an integer from 0 to 2147483647");
}

}  // namespace
}  // namespace isochron
