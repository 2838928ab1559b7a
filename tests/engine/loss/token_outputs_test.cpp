#include "isochron/engine/loss/token_outputs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/engine/support/closeness.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

struct Problem {
  at::Tensor hidden_TD, weight_VD, labels_T, grad_log_prob_T, grad_entropy_T;
};

Problem random_problem(std::uint64_t seed, std::int64_t tokens, std::int64_t vocabulary = 23,
                       at::ScalarType dtype = at::kDouble) {
  at::Generator random = at::detail::createCPUGenerator(seed);
  const auto normal = [&](at::IntArrayRef sizes) { return at::randn(sizes, random, at::kDouble); };
  Problem problem;
  problem.hidden_TD = normal({tokens, 6}).to(dtype).requires_grad_();
  problem.weight_VD = normal({vocabulary, 6}).to(dtype).requires_grad_();
  // A quarter of the positions have no label.
  const at::Tensor none = at::randint(0, 4, {tokens}, random, at::kLong) == 0;
  problem.labels_T = at::randint(0, vocabulary, {tokens}, random, at::kLong).masked_fill(none, -1);
  problem.grad_log_prob_T = normal({tokens});
  problem.grad_entropy_T = normal({tokens});
  return problem;
}

// The same with all logits at once, by torch's own gradients.
TokenOutputs plain_outputs(const Problem& problem, double temperature) {
  const at::Tensor log_p =
      at::log_softmax(at::mm(problem.hidden_TD, problem.weight_VD.t()) / temperature, 1);
  const at::Tensor has_label = problem.labels_T >= 0;
  const at::Tensor index = problem.labels_T.clamp_min(0).unsqueeze(1);
  return {.log_prob_T = log_p.gather(1, index).squeeze(1) * has_label,
          .entropy_T = -(log_p.exp() * log_p).sum(1) * has_label};
}

struct Gradients {
  at::Tensor hidden_TD, weight_VD;
};

Gradients gradients_of(const Problem& problem, const TokenOutputs& outputs, bool use_log_prob,
                       bool use_entropy) {
  at::Tensor loss = at::zeros({}, problem.grad_log_prob_T.options());
  if (use_log_prob) loss = loss + (outputs.log_prob_T * problem.grad_log_prob_T).sum();
  if (use_entropy) loss = loss + (outputs.entropy_T * problem.grad_entropy_T).sum();
  loss.backward();
  const Gradients result = {problem.hidden_TD.grad(), problem.weight_VD.grad()};
  problem.hidden_TD.mutable_grad().reset();
  problem.weight_VD.mutable_grad().reset();
  return result;
}

TEST(TokenOutputs, EqualLogSoftmaxOverAllLogits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::int64_t tokens = 1 + static_cast<std::int64_t>(seed % 20);
    const std::int64_t chunk = 1 + static_cast<std::int64_t>(seed % 7);
    const double temperature = seed % 3 == 0 ? 1.0 : 0.7;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Problem problem = random_problem(seed, tokens);
    const TokenOutputs expected = plain_outputs(problem, temperature);
    const auto outputs = [&] {
      return token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T,
                           {.chunk = chunk, .temperature = temperature, .entropy = true});
    };
    EXPECT_LT(relative_difference(outputs().log_prob_T, expected.log_prob_T), 1e-13);
    EXPECT_LT(relative_difference(outputs().entropy_T, expected.entropy_T), 1e-13);
    for (const auto& [use_log_prob, use_entropy] :
         {std::pair{true, true}, {true, false}, {false, true}}) {
      const Gradients want =
          gradients_of(problem, plain_outputs(problem, temperature), use_log_prob, use_entropy);
      const Gradients have = gradients_of(problem, outputs(), use_log_prob, use_entropy);
      EXPECT_LT(relative_difference(have.hidden_TD, want.hidden_TD), 1e-12);
      EXPECT_LT(relative_difference(have.weight_VD, want.weight_VD), 1e-12);
    }
  }
}

TEST(TokenOutputs, GradientIsTheSlopeOfTheOutputs) {
  const Problem problem = random_problem(1, 5, 7);
  const HeadOptions options = {.chunk = 2, .temperature = 1.3, .entropy = true};
  const auto outputs_at = [&](const at::Tensor& hidden, const at::Tensor& weight) {
    return token_outputs(hidden, weight, problem.labels_T, options);
  };
  const Gradients gradients =
      gradients_of(problem, outputs_at(problem.hidden_TD, problem.weight_VD), true, true);
  const auto value_at = [&](const at::Tensor& hidden, const at::Tensor& weight) {
    const at::NoGradGuard no_grad;
    const TokenOutputs outputs = outputs_at(hidden, weight);
    return (outputs.log_prob_T * problem.grad_log_prob_T +
            outputs.entropy_T * problem.grad_entropy_T)
        .sum()
        .item<double>();
  };
  constexpr double step = 1e-6;
  const at::NoGradGuard no_grad;
  const auto expect_slopes = [&](const at::Tensor& x, const at::Tensor& gradient, auto value) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      at::Tensor above = x.detach().clone();
      at::Tensor below = x.detach().clone();
      above.view(-1)[i] += step;
      below.view(-1)[i] -= step;
      EXPECT_NEAR((value(above) - value(below)) / (2 * step), gradient.view(-1)[i].item<double>(),
                  1e-7);
    }
  };
  expect_slopes(problem.hidden_TD, gradients.hidden_TD,
                [&](const at::Tensor& hidden) { return value_at(hidden, problem.weight_VD); });
  expect_slopes(problem.weight_VD, gradients.weight_VD,
                [&](const at::Tensor& weight) { return value_at(problem.hidden_TD, weight); });
}

TEST(TokenOutputs, APositionWithoutLabelIsZeroAndSendsBackNothing) {
  const Problem problem = random_problem(2, 9);
  const TokenOutputs outputs = token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T,
                                             {.chunk = 4, .entropy = true});
  const Gradients gradients = gradients_of(problem, outputs, true, true);
  int num_without = 0;
  for (std::int64_t t = 0; t < 9; ++t) {
    const bool has_label = problem.labels_T[t].item<std::int64_t>() >= 0;
    num_without += has_label ? 0 : 1;
    EXPECT_EQ(outputs.log_prob_T[t].item<double>() != 0, has_label);
    EXPECT_EQ(outputs.entropy_T[t].item<double>() != 0, has_label);
    EXPECT_EQ(gradients.hidden_TD[t].abs().max().item<double>() != 0, has_label);
  }
  EXPECT_GT(num_without, 0);
}

TEST(TokenOutputs, NoTokensAndNoLabelsGiveGradientsOfZero) {
  for (const std::int64_t tokens : {0, 5}) {
    const Problem problem = random_problem(3, tokens);
    const at::Tensor labels = at::full({tokens}, -1, at::kLong);
    const TokenOutputs outputs =
        token_outputs(problem.hidden_TD, problem.weight_VD, labels, {.entropy = true});
    const Gradients gradients = gradients_of(problem, outputs, true, true);
    EXPECT_EQ(outputs.log_prob_T.sizes(), at::IntArrayRef({tokens}));
    EXPECT_EQ(outputs.log_prob_T.sum().item<double>(), 0);
    EXPECT_EQ(gradients.hidden_TD.sizes(), problem.hidden_TD.sizes());
    EXPECT_EQ(gradients.hidden_TD.abs().sum().item<double>(), 0);
    EXPECT_EQ(gradients.weight_VD.abs().sum().item<double>(), 0);
  }
}

TEST(TokenOutputs, LogitsOfAnySizeStayFinite) {
  Problem problem = random_problem(4, 6);
  problem.hidden_TD = (problem.hidden_TD.detach() * 1e4).requires_grad_();
  const TokenOutputs outputs =
      token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T, {.entropy = true});
  EXPECT_TRUE(outputs.log_prob_T.isfinite().all().item<bool>());
  EXPECT_LT(outputs.log_prob_T.min().item<double>(), -1e3);
  const Gradients gradients = gradients_of(problem, outputs, true, true);
  EXPECT_TRUE(gradients.hidden_TD.isfinite().all().item<bool>());
  EXPECT_TRUE(gradients.weight_VD.isfinite().all().item<bool>());
}

TEST(TokenOutputs, HalfPrecisionGivesWideOutputsAndAddsChunksUpInWideNumbers) {
  constexpr std::int64_t tokens = 4096;
  const Problem wide = random_problem(5, tokens, 5, at::kFloat);
  Problem narrow = wide;
  narrow.hidden_TD = wide.hidden_TD.detach().to(at::kBFloat16).requires_grad_();
  narrow.weight_VD = wide.weight_VD.detach().to(at::kBFloat16).requires_grad_();
  const auto run = [](const Problem& problem) {
    return token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T, {.chunk = 4});
  };
  const at::Tensor ones = at::ones({tokens});
  const auto gradients = [&](const Problem& problem) {
    const TokenOutputs outputs = run(problem);
    EXPECT_EQ(outputs.log_prob_T.scalar_type(), at::kFloat);
    (outputs.log_prob_T * ones).sum().backward();
    return problem.weight_VD.grad();
  };
  const at::Tensor expected = gradients(wide);
  const at::Tensor actual = gradients(narrow);
  EXPECT_EQ(actual.scalar_type(), at::kBFloat16);
  // 1024 chunks: added up in 8 bits they would be off by several percent.
  EXPECT_LT(relative_difference(actual, expected), 0.01);
}

TEST(TokenOutputs, NeverHoldTheLogitsOfAllTokens) {
  constexpr std::int64_t tokens = 2000;
  constexpr std::int64_t vocabulary = 5000;
  constexpr std::int64_t chunk = 100;
  const Problem problem = random_problem(6, tokens, vocabulary, at::kFloat);
  constexpr std::int64_t chunk_bytes = chunk * vocabulary * 4;  // of 2 MB; all would be 40 MB
  const CpuMemory memory;
  const TokenOutputs outputs =
      token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T, {.chunk = chunk});
  EXPECT_LT(memory.live(), 2 * chunk_bytes);
  outputs.log_prob_T.sum().backward();
  EXPECT_LT(memory.peak(), 3 * chunk_bytes);
}

TEST(TokenOutputs, KeepNothingWithoutGradients) {
  const Problem problem = random_problem(7, 300, 1000, at::kFloat);
  const at::NoGradGuard no_grad;
  const CpuMemory memory;
  const TokenOutputs outputs =
      token_outputs(problem.hidden_TD, problem.weight_VD, problem.labels_T, {.chunk = 64});
  EXPECT_EQ(memory.live(), static_cast<std::int64_t>(outputs.log_prob_T.nbytes()));
  EXPECT_FALSE(outputs.entropy_T.defined());
}

TEST(TokenOutputs, NameWhatIsWrong) {
  const Problem problem = random_problem(8, 4);
  const auto message = [&](const at::Tensor& hidden, const at::Tensor& labels,
                           const HeadOptions& options) {
    return message_of(
        [&] { static_cast<void>(token_outputs(hidden, problem.weight_VD, labels, options)); });
  };
  EXPECT_EQ(message(problem.hidden_TD, problem.labels_T, {.chunk = 0}),
            "[token outputs] chunk is 0, must be at least 1");
  EXPECT_EQ(message(problem.hidden_TD, problem.labels_T, {.temperature = 0}),
            "[token outputs] temperature is 0, must be above 0");
  EXPECT_EQ(message(at::zeros({4, 5}, at::kDouble), problem.labels_T, {}),
            "[token outputs] the hidden states have width 5, must have that of the head, 6");
  EXPECT_EQ(message(problem.hidden_TD, problem.labels_T.narrow(0, 0, 3), {}),
            "[token outputs] 3 labels, must be one int64 for each of 4 tokens");
}

}  // namespace
}  // namespace isochron
