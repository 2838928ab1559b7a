// The decoder against transformers, over every architecture, rope type and shape of the reference.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "isochron/engine/loss/token_outputs.h"
#include "isochron/engine/model/hf_folder.h"
#include "tests/engine/support/closeness.h"
#include "tests/engine/support/model_reference.h"
#include "tests/engine/support/packed_tokens.h"

namespace isochron {
namespace {

// Mean of the negative log-probabilities of all next tokens.
at::Tensor mean_loss(const Decoder& decoder, const PackedTokens& input) {
  const at::Tensor labels = next_tokens(input);
  const TokenOutputs outputs =
      token_outputs(decoder.hidden_TD(input), decoder.head_weight(), labels, {.chunk = 50});
  return -outputs.log_prob_T.sum() / (labels >= 0).sum();
}

TEST(Transformers, ThereAreReferencesForEveryFamilyAndRopeType) {
  const auto names = reference_cases();
  EXPECT_GE(names.size(), 40u);
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    for (const char* rope : {"default", "linear", "llama3", "yarn", "dynamic"}) {
      EXPECT_NE(std::find(names.begin(), names.end(), fmt::format("{}_{}", family, rope)),
                names.end());
    }
  }
}

TEST(Transformers, GivesTheSameLogitsPacked) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : reference_cases()) {
    SCOPED_TRACE(name);
    const ModelReference reference(name);
    const Decoder decoder = load_decoder(reference.folder, {});
    const at::Tensor hidden = decoder.hidden_TD(packed(reference.sequences()));
    const at::Tensor logits = at::mm(hidden, decoder.head_weight().t());
    const at::Tensor expected = reference.get("logits", ElementType::F32);
    EXPECT_GT(expected.abs().max().item<double>(), 0.5);  // far above the tolerance
    EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-5);
  }
}

TEST(Transformers, GivesTheSameLossAndGradientOfEveryParameter) {
  for (const std::string& name : reference_cases()) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      SCOPED_TRACE(name + " recompute " + std::string(name_of(recompute)));
      const ModelReference reference(name);
      const Decoder decoder = load_decoder(reference.folder, {.recompute = recompute});
      const at::Tensor loss = mean_loss(decoder, packed(reference.sequences()));
      EXPECT_NEAR(loss.item<double>(), reference.get("loss", ElementType::F32).item<double>(),
                  1e-5);
      loss.backward();
      for (const Parameter& parameter : decoder.parameters()) {
        SCOPED_TRACE(parameter.name);
        const at::Tensor expected = reference.get("gradient." + parameter.name, ElementType::F32);
        ASSERT_TRUE(parameter.value.grad().defined());
        EXPECT_GT(expected.abs().max().item<double>(), 1e-5);
        EXPECT_LT(relative_difference(parameter.value.grad(), expected), 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace isochron
