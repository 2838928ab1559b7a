#include "isochron/cost/capacity.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

const ModelShape shape = model_preset("llama-3-8b");
const Hardware h100 = hardware_preset("h100");

constexpr std::int64_t parameters = 8'030'261'248;
constexpr std::int64_t embedding = 128'256LL * 4096;  // the head is as large, and not tied
constexpr std::int64_t token_bytes = 34LL * 4096 * 32;

TEST(AutoCapacity, IsWhatTheMemoryLeavesOverTheBytesOfAToken) {
  const Capacity capacity = auto_capacity(shape, h100, {.ranks = 64});
  EXPECT_EQ(capacity.device_bytes, 80'000'000'000);
  EXPECT_EQ(capacity.reserve_bytes, 8'000'000'000);
  EXPECT_EQ(capacity.state_bytes, 6 * parameters + 12 * parameters / 64);
  EXPECT_EQ(capacity.logits_bytes, 4 * 2048LL * (4096 + 128'256));
  EXPECT_EQ(capacity.activation_bytes,
            80'000'000'000 - 8'000'000'000 - capacity.state_bytes - capacity.logits_bytes);
  EXPECT_EQ(capacity.activation_bytes_per_token, token_bytes);
  EXPECT_EQ(capacity.tokens, capacity.activation_bytes / token_bytes);
  EXPECT_EQ(capacity.tokens, 4763);
}

TEST(AutoCapacity, GrowsWithTheRanksThatShareTheOptimizer) {
  const Hardware h200 = hardware_preset("h200");
  EXPECT_LT(auto_capacity(shape, h200, {.ranks = 4}).tokens,
            auto_capacity(shape, h200, {.ranks = 8}).tokens);
}

TEST(AutoCapacity, DividesByTheDevicesOfARank) {
  const Capacity capacity = auto_capacity(shape, h100, {.ranks = 8, .tensor_parallel = 4});
  EXPECT_EQ(capacity.state_bytes, 6 * parameters / 4 + 12 * parameters / 4 / 8);
  EXPECT_EQ(capacity.logits_bytes, 2048LL * (4096 + 128'256));
  EXPECT_EQ(capacity.activation_bytes_per_token, token_bytes / 4);
}

TEST(AutoCapacity, CountsTheStageWithTheEmbedding) {
  const Capacity capacity = auto_capacity(shape, h100, {.ranks = 8, .stages = 4});
  const std::int64_t of_stage = (parameters - 2 * embedding) / 4 + embedding;
  EXPECT_EQ(capacity.state_bytes, 6 * of_stage + 12 * of_stage / 8);
  ModelShape tied = shape;
  tied.tied_head = true;
  EXPECT_EQ(auto_capacity(tied, h100, {.ranks = 8, .stages = 4}).state_bytes, capacity.state_bytes);
}

TEST(AutoCapacity, CountsTheMicrobatchesInFlightOnTheFirstStage) {
  // Four micro-batches of a quarter of the layers.
  EXPECT_EQ(auto_capacity(shape, h100, {.ranks = 8, .stages = 4}).activation_bytes_per_token,
            token_bytes);
  // 1 + (p - 1) / (p v) with groups of p.
  EXPECT_EQ(auto_capacity(shape, h100, {.ranks = 8, .stages = 4, .virtual_ = 2, .group = 4})
                .activation_bytes_per_token,
            token_bytes * 11 / 8);
  // A longer group: 2 * 3 + 8 + 1 chunks of an eighth.
  EXPECT_EQ(auto_capacity(shape, h100, {.ranks = 8, .stages = 4, .virtual_ = 2, .group = 8})
                .activation_bytes_per_token,
            token_bytes * 15 / 8);
}

TEST(AutoCapacity, GrowsWithWhatIsRecomputed) {
  const Capacity capacity =
      auto_capacity(shape, h100, {.ranks = 8, .stages = 2, .recompute = Recompute::full});
  EXPECT_EQ(capacity.activation_bytes_per_token, 2LL * 4096 * 32);
}

TEST(AutoCapacity, CountsTheLargestStage) {
  const Capacity capacity =
      auto_capacity(shape, h100, {.ranks = 8, .stages = 2, .shares = {0.25, 0.75}});
  const std::int64_t of_stage = (parameters - 2 * embedding) * 3 / 4 + embedding;
  EXPECT_EQ(capacity.state_bytes, 6 * of_stage + 12 * of_stage / 8);
  EXPECT_EQ(capacity.activation_bytes_per_token, token_bytes * 2 * 3 / 4);
  EXPECT_EQ(message_of([] { (void)auto_capacity(shape, h100, {.stages = 2, .shares = {1}}); }),
            "[capacity] shares has 1 numbers, must be one for each of the 2 chunks");
}

TEST(AutoCapacity, AForwardPassHoldsOneLayer) {
  const Capacity capacity = auto_capacity(shape, h100, {.ranks = 64, .keeps_activations = false});
  EXPECT_EQ(capacity.activation_bytes_per_token, token_bytes / 32);
  EXPECT_EQ(capacity.state_bytes, auto_capacity(shape, h100, {.ranks = 64}).state_bytes);
}

TEST(AutoCapacity, SaysWhereTheMemoryWentIfNothingIsLeft) {
  EXPECT_EQ(message_of([] { (void)auto_capacity(shape, h100); }),
            "[capacity] h100 has 80.0 GB: a reserve of 8.0 GB, states of 144.5 GB and logits of "
            "1.1 GB leave nothing for activations, must be more ranks, tensor_parallel or stages");
}

TEST(AutoCapacity, RejectsCountsThatMakeNoSense) {
  const auto message = [](const CapacityOptions& options) {
    return message_of([&] { (void)auto_capacity(shape, h100, options); });
  };
  EXPECT_EQ(message({.stages = 11, .virtual_ = 3}),
            "[capacity] there are 33 chunks on 11 stages, must be at most 32, the layers of "
            "llama-3-8b");
  EXPECT_EQ(message({.ranks = 0}), "[capacity] ranks is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.tensor_parallel = 0}),
            "[capacity] tensor_parallel is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.stages = -1}), "[capacity] stages is -1, must be 1 to 1048576");
  EXPECT_EQ(message({.virtual_ = 0}), "[capacity] virtual is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.group = 0}), "[capacity] group is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.loss_chunk = 0}), "[capacity] loss_chunk is 0, must be 1 to 1048576");
  EXPECT_EQ(message_of([] { (void)auto_capacity(shape, {.name = "paper"}); }),
            "[capacity] hbm_bytes of paper is 0, must be at least 1");
}

}  // namespace
}  // namespace isochron
