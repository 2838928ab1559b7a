#include "isochron/engine/model/dropout.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "isochron/engine/loss/token_outputs.h"
#include "tests/engine/support/closeness.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/packed_tokens.h"
#include "tests/engine/support/plain_decoder.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using Sequences = std::vector<std::vector<std::int64_t>>;

constexpr std::array modes = {Recompute::none, Recompute::selective, Recompute::full};
constexpr Dropout tenth = {.probability = 0.1, .seed = 42, .step = 3};

// Sequence i as row first_row + i of a data set.
PackedTokens packed_rows(std::span<const std::vector<std::int64_t>> sequences,
                         std::int64_t first_row = 0) {
  PackedTokens input = packed(sequences);
  input.rows_T = at::empty_like(input.tokens_T);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    input.rows_T.slice(0, input.cu_seqlens[i], input.cu_seqlens[i + 1])
        .fill_(first_row + static_cast<std::int64_t>(i));
  }
  return input;
}

PackedTokens some_tokens() {
  Random random(5);
  return packed_rows(random_sequences(random, 5, 30, 31));
}

TEST(Dropout, TheInputsOfEachProductHaveTheirMask) {
  const PackedTokens input = some_tokens();
  const TokenMasks masks(tenth, input.rows_T, input.positions_T);
  for (const std::int64_t width : {1, 2, 7, 64}) {
    const at::Tensor x_TD = at::randn({input.tokens_T.numel(), width}, at::kDouble);
    for (const std::int64_t layer : {0, 1, 90}) {
      const LayerMasks of_layer = masks.of_layer(layer);
      const std::vector<std::pair<MaskedInput, const InputMask*>> inputs = {
          {MaskedInput::qkv, &of_layer.qkv},
          {MaskedInput::output, &of_layer.output},
          {MaskedInput::gate_up, &of_layer.gate_up},
          {MaskedInput::down, &of_layer.down}};
      for (const auto& [which, mask] : inputs) {
        const at::Tensor expected = x_TD * plain_mask_TD(input, tenth, layer, which, width);
        EXPECT_LT(relative_difference(mask->apply(x_TD), expected), 1e-15);
        const at::Tensor in_place = x_TD.clone();
        mask->apply_(in_place);
        EXPECT_TRUE(at::equal(in_place, mask->apply(x_TD)));
      }
    }
  }
}

// Where a device has no kernel, torch's operations make the mask.
TEST(Dropout, TheKernelAndTheOperationsOfTensorsDropTheSame) {
  const PackedTokens input = some_tokens();
  for (const double probability : {0.1, 0.5, 0.999}) {
    const TokenMasks masks({.probability = probability, .seed = -5, .step = 1'000'000},
                           input.rows_T + (std::int64_t{1} << 40), input.positions_T);
    for (const std::int64_t width : {1, 2, 33, 128}) {
      const at::Tensor ones_TD = at::ones({input.tokens_T.numel(), width});
      for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
        const at::Tensor by_kernel = masks.of_layer(1).down.apply(ones_TD);
        const at::Tensor by_tensors = masks.of_layer(1).down.apply(ones_TD.to(dtype));
        EXPECT_TRUE(at::equal(by_tensors, by_kernel.to(dtype)));
        const at::Tensor in_place = ones_TD.to(dtype);
        masks.of_layer(1).down.apply_(in_place);
        EXPECT_TRUE(at::equal(in_place, by_tensors));
      }
    }
  }
}

TEST(Dropout, NoMaskIsNoWork) {
  const at::Tensor x_TD = at::ones({3, 4});
  EXPECT_TRUE(TokenMasks().of_layer(0).qkv.apply(x_TD).is_same(x_TD));
  const Decoder decoder(model_config_from_json(small_config("qwen3")), {});
  randomise(decoder, 1);
  const PackedTokens input = some_tokens();
  const auto kept = [&](const Dropout& dropout) {
    const CpuMemory memory;
    const at::Tensor hidden_TD = decoder.hidden_TD(input, dropout);
    return memory.live();
  };
  // With masks, nothing but the stream of each token is kept.
  EXPECT_EQ(kept(tenth) - kept({}), input.tokens_T.numel() * 8);
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor positions_T = at::arange(500);
  const TokenMasks masks(tenth, at::zeros_like(positions_T), positions_T);
  const at::Tensor x_TD = at::randn({500, 33});
  const at::Tensor one = masks.of_layer(0).qkv.apply(x_TD);
  at::set_num_threads(3);
  const at::Tensor three = masks.of_layer(0).qkv.apply(x_TD);
  at::set_num_threads(1);
  EXPECT_TRUE(at::equal(one, three));
}

TEST(Dropout, ANumberThatIsNotFiniteStaysVisibleUnlessItIsDropped) {
  const at::Tensor positions_T = at::arange(50);
  const TokenMasks masks(tenth, at::zeros_like(positions_T), positions_T);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor ones = at::ones({50, 20}, dtype);
    const at::Tensor nans = at::full({50, 20}, std::numeric_limits<double>::quiet_NaN(), dtype);
    const InputMask mask = masks.of_layer(0).qkv;
    EXPECT_TRUE(at::equal(mask.apply(nans).isnan(), mask.apply(ones) != 0));
  }
}

// The sum of the log-probabilities of all next tokens, and its gradients.
struct Outcome {
  double sum = 0;
  std::vector<at::Tensor> gradients;
};

Outcome take_outcome(const Decoder& decoder, double sum) {
  Outcome outcome = {.sum = sum, .gradients = {}};
  for (const Parameter& parameter : decoder.parameters()) {
    outcome.gradients.push_back(parameter.value.grad());
    parameter.value.mutable_grad().reset();
  }
  return outcome;
}

// Adds to the gradients.
double run(const Decoder& decoder, const PackedTokens& input, const at::Tensor& hidden_TD) {
  const at::Tensor sum =
      token_outputs(hidden_TD, decoder.head_weight(), next_tokens(input)).log_prob_T.sum();
  sum.backward();
  return sum.item<double>();
}

void expect_close(const Decoder& decoder, const Outcome& actual, const Outcome& expected,
                  double tolerance) {
  EXPECT_NEAR(actual.sum, expected.sum, tolerance * std::abs(expected.sum));
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    EXPECT_LT(relative_difference(actual.gradients[i], expected.gradients[i]), tolerance)
        << decoder.parameters()[i].name;
  }
}

TEST(Dropout, GradientsAreThoseOfAutogradOverTheSameMasks) {
  const PackedTokens input = some_tokens();
  for (const std::string& config : small_configs()) {
    for (const Recompute recompute : modes) {
      SCOPED_TRACE(config + " " + std::string(name_of(recompute)));
      const Decoder decoder(model_config_from_json(config),
                            {.dtype = at::kDouble, .recompute = recompute});
      randomise(decoder, 2);
      for (const Dropout& dropout : {Dropout{}, tenth}) {
        const Outcome expected =
            take_outcome(decoder, run(decoder, input, plain_hidden_TD(decoder, input, dropout)));
        const Outcome actual =
            take_outcome(decoder, run(decoder, input, decoder.hidden_TD(input, dropout)));
        expect_close(decoder, actual, expected, 1e-12);
      }
    }
  }
}

TEST(Dropout, RecomputingGivesTheSameGradientsBitByBit) {
  const PackedTokens input = some_tokens();
  for (const std::string& config : small_configs()) {
    std::vector<Outcome> outcomes;
    for (const Recompute recompute : modes) {
      const Decoder decoder(model_config_from_json(config), {.recompute = recompute});
      randomise(decoder, 2);
      outcomes.push_back(
          take_outcome(decoder, run(decoder, input, decoder.hidden_TD(input, tenth))));
    }
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.sum, outcomes[0].sum);
      for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
        EXPECT_TRUE(at::equal(outcome.gradients[i], outcomes[0].gradients[i]));
      }
    }
  }
}

// What a generator with a state gets wrong.
TEST(Dropout, AnySplitOfTheRowsGivesTheSameGradients) {
  for (const std::string& config : small_configs()) {
    const Decoder decoder(model_config_from_json(config), {.dtype = at::kDouble});
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(testing::Message() << config << " seed " << seed);
      Random random(seed);
      randomise(decoder, seed);
      const Sequences sequences = random_sequences(random, 6, 30, 31);
      const auto outcome_of = [&](const std::vector<std::size_t>& starts) {
        double sum = 0;
        for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
          const PackedTokens input =
              packed_rows(std::span(sequences).subspan(starts[i], starts[i + 1] - starts[i]),
                          static_cast<std::int64_t>(starts[i]));
          sum += run(decoder, input, decoder.hidden_TD(input, tenth));
        }
        return take_outcome(decoder, sum);
      };
      const Outcome alone = outcome_of({0, 1, 2, 3, 4, 5, 6});
      expect_close(decoder, outcome_of({0, 6}), alone, 1e-12);
      expect_close(decoder, outcome_of({0, static_cast<std::size_t>(random.between(1, 5)), 6}),
                   alone, 1e-12);
    }
  }
}

TEST(Dropout, OtherSeedsAndStepsTakeOtherMasks) {
  const Decoder decoder(model_config_from_json(small_config("qwen3")), {});
  randomise(decoder, 1);
  const PackedTokens input = some_tokens();
  const auto hidden = [&](std::int64_t seed, std::int64_t step) {
    return decoder.hidden_TD(input, {.probability = 0.1, .seed = seed, .step = step});
  };
  EXPECT_TRUE(at::equal(hidden(1, 2), hidden(1, 2)));
  EXPECT_FALSE(at::allclose(hidden(1, 2), hidden(1, 3)));
  EXPECT_FALSE(at::allclose(hidden(1, 2), hidden(2, 2)));
}

TEST(Dropout, NamesWhatIsWrong) {
  const Decoder decoder(model_config_from_json(small_config("qwen3")), {});
  PackedTokens input = packed(Sequences{{1, 2}, {3}});
  const auto message = [&](double probability) {
    return message_of([&] { (void)decoder.hidden_TD(input, Dropout{.probability = probability}); });
  };
  EXPECT_EQ(message(0.1),
            "[decoder] 0 rows, must be one for each of 3 tokens where there is "
            "dropout");
  input.rows_T = at::zeros({2}, at::kLong);
  EXPECT_EQ(message(0.1),
            "[decoder] 2 rows, must be one for each of 3 tokens where there is "
            "dropout");
  EXPECT_EQ(message(1),
            "[decoder] the probability of dropout is 1, must be at least 0 and below "
            "1");
  EXPECT_EQ(message(0), "accepted");
}

}  // namespace
}  // namespace isochron
