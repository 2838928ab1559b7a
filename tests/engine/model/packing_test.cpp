// A sequence does not notice what is packed beside it.

#include <gtest/gtest.h>

#include "isochron/engine/loss/token_outputs.h"
#include "tests/engine/support/closeness.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/packed_tokens.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Sequences = std::vector<std::vector<std::int64_t>>;

// Sums of the log-probabilities of all next tokens; adds to the gradients.
double run(const Decoder& decoder, const PackedTokens& input) {
  const TokenOutputs outputs = token_outputs(decoder.hidden_TD(input), decoder.head_weight(),
                                             next_tokens(input), {.chunk = 7});
  const at::Tensor sum = outputs.log_prob_T.sum();
  sum.backward();
  return sum.item<double>();
}

std::vector<at::Tensor> take_gradients(const Decoder& decoder) {
  std::vector<at::Tensor> gradients;
  for (const Parameter& parameter : decoder.parameters()) {
    gradients.push_back(parameter.value.grad());
    parameter.value.mutable_grad().reset();
  }
  return gradients;
}

void expect_packing_changes_nothing(const Decoder& decoder, const Sequences& sequences,
                                    double tolerance) {
  double alone = 0;
  std::vector<at::Tensor> hidden;
  for (const auto& sequence : sequences) {
    const PackedTokens input = packed(Sequences{sequence});
    alone += run(decoder, input);
    hidden.push_back(decoder.hidden_TD(input));
  }
  const auto expected = take_gradients(decoder);
  const PackedTokens together = packed(sequences);
  EXPECT_NEAR(run(decoder, together), alone, tolerance * std::abs(alone) + tolerance);
  const auto actual = take_gradients(decoder);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LT(relative_difference(actual[i], expected[i]), tolerance)
        << decoder.parameters()[i].name;
  }
  EXPECT_LT(relative_difference(decoder.hidden_TD(together), at::cat(hidden)), tolerance);
}

TEST(Packing, ChangesNoResultAndNoGradientInDoublePrecision) {
  for (const std::string& config : small_configs()) {
    const Decoder decoder(model_config_from_json(config), {.dtype = at::kDouble});
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      SCOPED_TRACE(testing::Message() << decoder.config().model_type << " seed " << seed);
      Random random(seed);
      randomise(decoder, seed);
      expect_packing_changes_nothing(decoder,
                                     random_sequences(random, random.between(1, 6), 40, 31), 1e-12);
    }
  }
}

TEST(Packing, ChangesLittleInSinglePrecision) {
  for (const std::string& config : small_configs()) {
    const Decoder decoder(model_config_from_json(config), {});
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(testing::Message() << decoder.config().model_type << " seed " << seed);
      Random random(seed);
      randomise(decoder, seed);
      expect_packing_changes_nothing(decoder,
                                     random_sequences(random, random.between(1, 6), 40, 31), 1e-5);
    }
  }
}

TEST(Packing, HalfPrecisionIsCloseToSingle) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    for (const std::string& config : small_configs()) {
      SCOPED_TRACE(std::string(c10::toString(dtype)) + " " + config);
      Random random(1);
      const PackedTokens input = packed(random_sequences(random, 4, 40, 31));
      const Decoder wide(model_config_from_json(config), {});
      const Decoder narrow(model_config_from_json(config), {.dtype = dtype});
      randomise(wide, 1);
      randomise(narrow, 1);
      const double expected = run(wide, input);
      EXPECT_NEAR(run(narrow, input), expected, 0.02 * std::abs(expected));
      const auto wide_gradients = take_gradients(wide);
      const auto narrow_gradients = take_gradients(narrow);
      for (std::size_t i = 0; i < wide_gradients.size(); ++i) {
        EXPECT_EQ(narrow_gradients[i].scalar_type(), dtype);
        EXPECT_LT(relative_difference(narrow_gradients[i], wide_gradients[i]), 0.15)
            << wide.parameters()[i].name;
      }
    }
  }
}

TEST(Packing, NoTokensGiveNoStatesAndGradientsOfZero) {
  const Decoder decoder(model_config_from_json(small_config("qwen3")), {});
  randomise(decoder, 1);
  EXPECT_EQ(run(decoder, packed(Sequences{})), 0);
  for (const at::Tensor& gradient : take_gradients(decoder)) {
    ASSERT_TRUE(gradient.defined());
    EXPECT_EQ(gradient.abs().max().item<double>(), 0);
  }
}

TEST(Packing, MemoryGrowsWithTheTokensNotWithTheirSquare) {
  constexpr std::int64_t length = 16384;
  const Decoder decoder(
      model_config_from_json(R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 8,
        "vocab_size": 11})"),
      {});
  randomise(decoder, 1);
  std::vector<std::int64_t> tokens(length);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int64_t>(i % 11);
  const PackedTokens input = packed(Sequences{tokens});
  const CpuMemory memory;
  run(decoder, input);
  // One float for each pair of tokens would be 1 GiB.
  EXPECT_LT(memory.peak(), 50 << 20);
}

TEST(Packing, NamesWhatIsWrongWithTheStarts) {
  const Decoder decoder(model_config_from_json(small_config("qwen3")), {});
  PackedTokens input = packed(Sequences{{1, 2}, {3}});
  const auto message = [&](std::vector<std::int64_t> starts) {
    input.cu_seqlens = std::move(starts);
    return message_of([&] { static_cast<void>(decoder.hidden_TD(input)); });
  };
  EXPECT_EQ(message({}), "[decoder] cu_seqlens starts with nothing, must be 0");
  EXPECT_EQ(message({1, 3}), "[decoder] cu_seqlens starts with 1, must be 0");
  EXPECT_EQ(message({0, 2, 2, 3}), "[decoder] cu_seqlens[2] is 2, must be above 2");
  EXPECT_EQ(message({0, 2}), "[decoder] 3 tokens, must be 2, where the last sequence ends");
  input.positions_T = input.positions_T.narrow(0, 0, 2);
  EXPECT_EQ(message({0, 3}), "[decoder] 2 positions, must be one for each of 3 tokens");
}

}  // namespace
}  // namespace isochron
