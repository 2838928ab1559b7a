#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <map>

#include "isochron/engine/loss/token_outputs.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/packed_tokens.h"
#include "tests/engine/support/random_decoder.h"

namespace isochron {
namespace {

constexpr std::array modes = {Recompute::none, Recompute::selective, Recompute::full};

Decoder small_decoder(const std::string& config, Recompute recompute) {
  Decoder decoder(model_config_from_json(config), {.recompute = recompute});
  randomise(decoder, 3);
  return decoder;
}

PackedTokens some_tokens() {
  Random random(5);
  return packed(random_sequences(random, 8, 60, 31));
}

at::Tensor loss_of(const Decoder& decoder, const PackedTokens& input) {
  return token_outputs(decoder.hidden_TD(input), decoder.head_weight(), next_tokens(input))
      .log_prob_T.sum();
}

std::vector<std::string> configs() {
  return {small_config("llama", R"(, "attention_bias": true, "mlp_bias": true)"),
          small_config("qwen3", R"(, "tie_word_embeddings": true)")};
}

TEST(Recompute, GivesTheSameGradientsBitByBit) {
  const PackedTokens input = some_tokens();
  for (const std::string& config : configs()) {
    std::map<std::string, at::Tensor> expected;
    for (const Recompute recompute : modes) {
      const Decoder decoder = small_decoder(config, recompute);
      loss_of(decoder, input).backward();
      for (const Parameter& parameter : decoder.parameters()) {
        const auto [found, is_new] = expected.emplace(parameter.name, parameter.value.grad());
        EXPECT_TRUE(at::equal(parameter.value.grad(), found->second))
            << parameter.name << " with recompute " << name_of(recompute);
      }
    }
  }
}

TEST(Recompute, KeepsLessTheMoreItComputesAgain) {
  const PackedTokens input = some_tokens();
  for (const std::string& config : configs()) {
    std::vector<std::int64_t> kept;
    for (const Recompute recompute : modes) {
      const Decoder decoder = small_decoder(config, recompute);
      const CpuMemory memory;
      const at::Tensor hidden = decoder.hidden_TD(input);
      kept.push_back(memory.live());
    }
    EXPECT_GT(kept[0], kept[1]);
    EXPECT_GT(kept[1], kept[2]);
    // full: the input of each of 2 layers, of the final norm, and its output; T x 24 floats each,
    // beside the table of positions and the token ids.
    const std::int64_t states = 4 * input.tokens_T.numel() * 24 * 4;
    EXPECT_GE(kept[2], states);
    EXPECT_LT(kept[2], states + states / 2);
  }
}

TEST(Recompute, NothingIsKeptWithoutGradients) {
  const PackedTokens input = some_tokens();
  for (const Recompute recompute : modes) {
    const Decoder decoder = small_decoder(small_config("qwen3"), recompute);
    const at::NoGradGuard no_grad;
    const CpuMemory memory;
    const at::Tensor hidden = decoder.hidden_TD(input);
    EXPECT_FALSE(hidden.requires_grad());
    EXPECT_EQ(memory.live(), static_cast<std::int64_t>(hidden.nbytes()));
  }
}

TEST(Recompute, EveryParameterGetsItsGradientOnceInABackward) {
  struct CountingHook : torch::autograd::FunctionPostHook {
    explicit CountingHook(int& count) : count_(count) {}
    torch::autograd::variable_list operator()(
        const torch::autograd::variable_list& outputs,
        const torch::autograd::variable_list& /*inputs*/) override {
      ++count_;
      return outputs;
    }
    int& count_;
  };
  for (const Recompute recompute : modes) {
    for (const std::string& config : configs()) {
      const Decoder decoder = small_decoder(config, recompute);
      std::map<std::string, int> counts;
      std::vector<decltype(torch::autograd::impl::grad_accumulator(at::Tensor()))> accumulators;
      for (const Parameter& parameter : decoder.parameters()) {
        accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter.value));
        accumulators.back()->add_post_hook(std::make_unique<CountingHook>(counts[parameter.name]));
      }
      loss_of(decoder, some_tokens()).backward();
      loss_of(decoder, some_tokens()).backward();
      for (const auto& [name, count] : counts) EXPECT_EQ(count, 2) << name;
    }
  }
}

}  // namespace
}  // namespace isochron
