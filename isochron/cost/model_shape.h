#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isochron {

// The sizes of a decoder with grouped-query attention and SwiGLU, dense or with experts: what
// parameters, FLOPs and memory are counted from.
struct ModelShape {
  std::string name;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  // width of a dense MLP; of no effect if every layer has experts
  std::int64_t vocabulary = 0;
  bool tied_head = false;    // the output head is the embedding
  bool qkv_bias = false;     // on the query, key and value projections
  bool output_bias = false;  // on the projection after attention
  bool mlp_bias = false;     // on the three matrices of a dense MLP
  bool qk_norm = false;      // a norm over each query and key head

  // Mixture of experts. Which layers have them does not matter to a count, only how many.
  std::int64_t sparse_layers = 0;      // layers with experts; the others have a dense MLP
  std::int64_t num_experts = 0;        // in a sparse layer
  std::int64_t experts_per_token = 0;  // top-k
  std::int64_t moe_ffn = 0;            // width of an expert
  std::int64_t shared_ffn = 0;         // width of what every token passes besides; 0: none

  bool operator==(const ModelShape&) const = default;
};

// Throws std::invalid_argument with the field, its value and what is allowed, unless the shape is
// one that can be counted in 64 bits: sizes of at least 1 (up to 2^12 layers and experts, 2^18
// hidden and attention width, 2^20 in an MLP, 2^24 in the vocabulary), heads a multiple of the KV
// heads, at most 2^56 parameters. Functions that take a shape call it.
void require_valid(const ModelShape& shape);

// The shape that a Hugging Face config.json describes: model types llama, mistral, qwen2, qwen3,
// mixtral and qwen3_moe, by `model_type` or else by `architectures`. What is missing or null has
// the default of transformers, except that heads and widths have none beyond num_key_value_heads
// (the heads) and head_dim (hidden / heads). Other fields are ignored.
//
// Throws std::invalid_argument for another model type, a missing or impossible size, an activation
// other than silu, and an active sliding window, which would make attention cheaper than counted.
[[nodiscard]] ModelShape model_shape_from_config(std::string_view json_text);

// A shape by name, in any case: qwen2.5-0.5b, qwen2.5-7b (or 7b), qwen3-0.6b, qwen3-4b, qwen3-8b,
// qwen3-32b, llama-3-8b, llama-3-70b. Throws std::invalid_argument, with the nearest, for another.
[[nodiscard]] ModelShape model_preset(std::string_view name);
[[nodiscard]] std::vector<std::string> model_names();

// Throws std::invalid_argument unless each of the chunks that pipeline stages cut the model into,
// `virtual_` on every stage, has a layer.
void require_layers(const ModelShape& shape, std::int32_t stages, std::int32_t virtual_,
                    std::string_view where);

// All parameters, exact: embedding, head unless tied, norms, biases, routers, every expert.
[[nodiscard]] std::int64_t num_parameters(const ModelShape& shape);

}  // namespace isochron
