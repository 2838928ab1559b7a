// The decoder on a GPU against the CPU. Skipped where there is none.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "isochron/engine/loss/token_outputs.h"
#include "tests/engine/support/closeness.h"
#include "tests/engine/support/packed_tokens.h"
#include "tests/engine/support/random_decoder.h"

namespace isochron {
namespace {

struct Outcome {
  double loss = 0;
  std::vector<at::Tensor> gradients;
};

Outcome run(const std::string& config, const PackedTokens& input, const DecoderOptions& options) {
  const Decoder decoder(model_config_from_json(config), options);
  randomise(decoder, 3);
  PackedTokens placed = input;
  placed.tokens_T = input.tokens_T.to(options.device);
  placed.positions_T = input.positions_T.to(options.device);
  const at::Tensor labels = next_tokens(input).to(options.device);
  const at::Tensor loss =
      token_outputs(decoder.hidden_TD(placed), decoder.head_weight(), labels, {.chunk = 50})
          .log_prob_T.sum();
  loss.backward();
  Outcome outcome = {.loss = loss.item<double>(), .gradients = {}};
  for (const Parameter& parameter : decoder.parameters()) {
    outcome.gradients.push_back(parameter.value.grad().cpu());
  }
  return outcome;
}

// Head dims of the kernels are multiples of 8.
std::vector<std::string> configs() {
  return {R"({"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 32,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
              "vocab_size": 31})",
          R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "mlp_bias": true,
              "num_attention_heads": 4, "num_key_value_heads": 1, "intermediate_size": 96,
              "vocab_size": 31, "attention_bias": true, "tie_word_embeddings": true})"};
}

class Cuda : public testing::TestWithParam<Recompute> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
};

void expect_close(at::ScalarType dtype, Recompute recompute, double tolerance) {
  for (const std::string& config : configs()) {
    Random random(5);
    const PackedTokens input = packed(random_sequences(random, 8, 300, 31));
    const Outcome expected = run(config, input, {});
    const Outcome actual =
        run(config, input, {.device = at::kCUDA, .dtype = dtype, .recompute = recompute});
    EXPECT_NEAR(actual.loss, expected.loss, tolerance * std::abs(expected.loss));
    for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
      EXPECT_LT(relative_difference(actual.gradients[i], expected.gradients[i]), tolerance) << i;
    }
  }
}

TEST_P(Cuda, EqualsTheCpuInSinglePrecision) { expect_close(at::kFloat, GetParam(), 2e-4); }

TEST_P(Cuda, IsCloseInHalfPrecision) { expect_close(at::kBFloat16, GetParam(), 0.1); }

INSTANTIATE_TEST_SUITE_P(EveryRecompute, Cuda,
                         testing::Values(Recompute::none, Recompute::selective, Recompute::full),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace isochron
