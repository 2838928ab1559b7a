#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "isochron/engine/model/decoder.h"

namespace isochron {

// A model from a Hugging Face folder: config.json and model.safetensors, or the shards that
// model.safetensors.index.json names. Weights are mapped and converted to the dtype of `options`.
//
// Throws std::runtime_error if a file is missing, std::invalid_argument naming the tensor or the
// field for an unknown architecture, a missing, an extra or a mis-shaped tensor, and what
// model_config_from_json() rejects.
[[nodiscard]] Decoder load_decoder(const std::filesystem::path& folder,
                                   const DecoderOptions& options);

// Writes config.json and the weights as `dtype` in shards of at most `max_shard_bytes`, so that
// transformers loads the folder. The other files of `source` (tokenizer, generation config) are
// copied if it is not empty.
void save_decoder(const Decoder& decoder, const std::filesystem::path& folder, at::ScalarType dtype,
                  const std::filesystem::path& source = {},
                  std::int64_t max_shard_bytes = std::int64_t{5} << 30);

// The same for a copy of a decoder's parameters.
void save_weights(const ModelConfig& config, std::span<const Parameter> weights,
                  const std::filesystem::path& folder, at::ScalarType dtype,
                  const std::filesystem::path& source = {},
                  std::int64_t max_shard_bytes = std::int64_t{5} << 30);

}  // namespace isochron
