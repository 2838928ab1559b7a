#include "isochron/cost/flops.h"

#include <gtest/gtest.h>

#include <vector>

#include "isochron/core/random.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Lengths = std::vector<Tokens>;

// Heads of 2 x 3, one KV head; FLOPs of a token by hand.
ModelShape tiny() {
  return {.name = "tiny",
          .hidden = 4,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 3,
          .ffn = 5,
          .vocabulary = 10};
}

TEST(Flops, ReproduceTheGoldenVector) {
  const ModelShape shape = model_preset("qwen2.5-0.5b");
  const Lengths lengths = {1000, 200, 300};
  EXPECT_EQ(verl_flops(shape, lengths), 5'816'659'968'000);
  EXPECT_EQ(model_flops(shape, lengths), 4'591'448'064'000);
  const auto h200 = find_hardware("NVIDIA H200");
  EXPECT_NEAR(mfu(verl_flops(shape, lengths), 0.1, h200, 8).value(), 0.0073517, 5e-8);
  EXPECT_NEAR(mfu(model_flops(shape, lengths), 0.1, h200, 8).value(), 0.0058031, 5e-8);
  // verl counts the weights of one token as 630,095,872: 6 FLOPs each, and attention to itself.
  EXPECT_EQ(verl_flops(shape, Lengths{1}), 6.0 * 630'095'872 + 6.0 * 14 * 64 * 24);
}

TEST(Flops, CountATinyModelByHand) {
  // q 4x6, k and v 4x3, o 6x4, three of 4x5; twice; head 4x10. Two FLOPs a weight.
  const std::int64_t linear = 2 * (2 * (24 + 12 + 12 + 24 + 3 * 20) + 40);
  EXPECT_EQ(linear_flops_per_token(tiny()), linear);
  EXPECT_EQ(attention_flops_per_square(tiny()), 2 * 6 * 2);
  const Lengths lengths = {3, 5};
  const double half = static_cast<double>(linear * 8 + 24 * (9 + 25));
  EXPECT_EQ(forward_flops(tiny(), lengths), half);
  EXPECT_EQ(backward_flops(tiny(), lengths), 2 * half);
  EXPECT_EQ(model_flops(tiny(), lengths), 3 * half);
  // 6 and 15 pairs remain under the mask; scores and values are 2 * 6 FLOPs each, in 2 layers.
  const double exact = static_cast<double>(linear * 8 + 2 * (2 * 12) * (6 + 15));
  EXPECT_EQ(forward_flops(tiny(), lengths, Triangle::exact), exact);
  EXPECT_EQ(backward_flops(tiny(), lengths, Triangle::exact), 2 * exact);
  EXPECT_EQ(model_flops(tiny(), Lengths{}), 0);
}

TEST(Flops, CountOfTheExpertsThoseThatATokenPasses) {
  ModelShape shape = tiny();
  const std::int64_t dense = linear_flops_per_token(shape);
  shape.sparse_layers = 1;
  shape.num_experts = 8;
  shape.experts_per_token = 2;
  shape.moe_ffn = 3;
  shape.shared_ffn = 1;
  // One MLP of width 5 becomes two of 3 and one of 1; the router does not count.
  EXPECT_EQ(linear_flops_per_token(shape), dense + 6 * 4 * (2 * 3 + 1 - 5));
  EXPECT_EQ(message_of([&] { (void)verl_flops(shape, Lengths{1}); }),
            "[flops] sparse_layers is 1, must be 0 for verl's count");
}

TEST(Flops, DoNotDependOnATiedHead) {
  ModelShape shape = tiny();
  shape.tied_head = true;
  EXPECT_EQ(model_flops(shape, Lengths{7}), model_flops(tiny(), Lengths{7}));
}

TEST(Flops, OfABatchAreThoseOfItsSequences) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Lengths lengths;
    double sum = 0;  // exact: far below 2^53
    for (int i = 0; i < 20; ++i) {
      lengths.push_back(random.between(1, 2000));
      sum += forward_flops(tiny(), Lengths{lengths.back()}, Triangle::exact);
    }
    EXPECT_EQ(forward_flops(tiny(), lengths, Triangle::exact), sum);
    EXPECT_LT(forward_flops(tiny(), lengths), sum);
  }
}

TEST(Flops, RoundOnceAboveTheExactRange) {
  // 2^31-1 tokens: the count of qwen3-32b needs 85 bits.
  const ModelShape shape = model_preset("qwen3-32b");
  const long double s = 2147483647.0L;
  const long double count =
      3 * (static_cast<long double>(linear_flops_per_token(shape)) * s +
           static_cast<long double>(attention_flops_per_square(shape)) * s * s);
  EXPECT_DOUBLE_EQ(model_flops(shape, Lengths{max_length}), static_cast<double>(count));
  EXPECT_GT(model_flops(shape, Lengths(1000, max_length)), 0x1p90);
}

TEST(Flops, NameTheLengthThatIsWrong) {
  EXPECT_EQ(message_of([] {
              (void)model_flops(tiny(), Lengths{3, 0});
            }),
            "[flops] lengths[1] is 0, must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of([] { (void)model_flops(tiny(), Lengths{max_length + 1}); }),
            "[flops] lengths[0] is 2147483648, must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of([] { (void)model_flops({}, Lengths{1}); }),
            "[model] hidden is 0, must be an integer from 1 to 262144");
}

TEST(Mfu, IsNoneForAnUnknownPeak) {
  EXPECT_EQ(mfu(1e15, 1, find_hardware("abacus"), 1), std::nullopt);
  EXPECT_EQ(mfu(1e15, 1, Hardware{.name = "abacus"}, 1), std::nullopt);
  EXPECT_EQ(mfu(989e12, 2, hardware_preset("h100"), 1), 0.5);
  EXPECT_EQ(message_of([] { (void)mfu(1, 0, std::nullopt, 1); }),
            "[mfu] seconds is 0, must be above 0");
  EXPECT_EQ(message_of([] { (void)mfu(-1, 1, std::nullopt, 1); }),
            "[mfu] flops is -1, must be at least 0");
  EXPECT_EQ(message_of([] { (void)mfu(1, 1, std::nullopt, 0); }),
            "[mfu] devices is 0, must be at least 1");
}

}  // namespace
}  // namespace isochron
