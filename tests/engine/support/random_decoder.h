#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/engine/model/decoder.h"

namespace isochron {

// Fills every parameter: norms around 1, the rest around 0.
inline void randomise(const Decoder& decoder, std::uint64_t seed, double scale = 0.2) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : decoder.parameters()) {
    const at::Tensor noise = at::randn(parameter.value.sizes(), generator, at::kDouble) * scale;
    parameter.value.copy_(parameter.name.ends_with("norm.weight") ? noise + 1 : noise);
  }
}

inline std::vector<std::vector<std::int64_t>> random_sequences(Random& random, std::int64_t count,
                                                               std::int64_t longest,
                                                               std::int64_t vocabulary) {
  std::vector<std::vector<std::int64_t>> sequences(static_cast<std::size_t>(count));
  for (auto& sequence : sequences) {
    // A third of them have one token.
    sequence.resize(random.below(3) == 0 ? 1
                                         : static_cast<std::size_t>(random.between(1, longest)));
    for (auto& token : sequence) token = random.between(0, vocabulary - 1);
  }
  return sequences;
}

// A configuration of small sizes; `more` adds fields or gives others.
inline std::string small_config(const std::string& model_type, const std::string& more = "") {
  return R"({"model_type": ")" + model_type + R"(", "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "intermediate_size": 40,
    "vocab_size": 31, "max_position_embeddings": 16)" +
         (model_type == "mistral" ? R"(, "sliding_window": null)" : "") + more + "}";
}

// Models that between them use every branch: biases, head norms, scaled positions, a tied head.
inline std::vector<std::string> small_configs() {
  return {small_config("llama", R"(, "attention_bias": true, "mlp_bias": true)"),
          small_config("qwen3", R"(, "tie_word_embeddings": true)"),
          small_config("qwen2", R"(, "rope_scaling": {"type": "dynamic", "factor": 3.0})"),
          small_config("mistral", R"(, "rope_scaling": {"type": "yarn", "factor": 2.0})")};
}

}  // namespace isochron
