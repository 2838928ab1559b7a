#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/cost/model_shape.h"

namespace isochron {

// How positions turn into angles.
struct RopeConfig {
  enum class Type { default_, linear, llama3, yarn, dynamic };
  Type type = Type::default_;
  double theta = 10000;
  double factor = 1;
  double original_max_position = 0;  // llama3, yarn; dynamic: max_position_embeddings
  double low_freq_factor = 1;        // llama3
  double high_freq_factor = 4;
  double beta_fast = 32;  // yarn
  double beta_slow = 1;
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {};
  std::optional<double> mscale_all_dim = {};
  bool truncate = true;

  bool operator==(const RopeConfig&) const = default;
};

// A decoder as its config.json describes it. Every field of the file is used here, stands on a list
// of harmless ones, or was rejected by name.
struct ModelConfig {
  ModelShape shape;        // sizes, biases, q/k norm, tied head
  std::string model_type;  // llama, mistral, qwen2 or qwen3
  double norm_epsilon = 1e-6;
  double initializer_range = 0.02;
  std::optional<std::int64_t> padding_token = {};  // its embedding gets no gradient as an input
  RopeConfig rope;
  std::string json_text;  // the document, to be written beside saved weights

  bool operator==(const ModelConfig&) const = default;
};

// Throws std::invalid_argument naming the field, its value and what is allowed.
[[nodiscard]] ModelConfig model_config_from_json(std::string_view json_text);

}  // namespace isochron
