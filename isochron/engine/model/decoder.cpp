#include "isochron/engine/model/decoder.h"

#include <ATen/ATen.h>

#include "isochron/core/require.h"
#include "isochron/engine/model/attention.h"
#include "isochron/engine/model/layer.h"
#include "isochron/engine/model/rms_norm.h"

namespace isochron {

struct Decoder::Weights {
  ModelConfig config;
  DecoderOptions options;
  std::vector<Parameter> parameters;
  at::Tensor embedding_VD, norm_D, head_VD;
  std::vector<std::shared_ptr<const Layer>> layers;

  Weights(const ModelConfig& config_, const DecoderOptions& options_);

 private:
  [[nodiscard]] at::Tensor empty(at::IntArrayRef sizes) const;
  at::Tensor add(const std::string& name, const at::Tensor& value, bool joined = false);
  at::Tensor add_norm(const std::string& name, std::int64_t size);
  Linear add_linear(const std::string& prefix, std::span<const std::string> names,
                    const std::vector<std::int64_t>& parts, std::int64_t inputs, bool has_bias);
  std::shared_ptr<const Layer> add_layer(std::int64_t index);
};

at::Tensor Decoder::Weights::empty(at::IntArrayRef sizes) const {
  return at::empty(sizes, at::TensorOptions(options.device).dtype(options.dtype));
}

at::Tensor Decoder::Weights::add(const std::string& name, const at::Tensor& value, bool joined) {
  parameters.push_back({name, value.detach().requires_grad_(), joined});
  return parameters.back().value;
}

at::Tensor Decoder::Weights::add_norm(const std::string& name, std::int64_t size) {
  return add(name + ".weight", empty({size}));
}

Linear Decoder::Weights::add_linear(const std::string& prefix, std::span<const std::string> names,
                                    const std::vector<std::int64_t>& parts, std::int64_t inputs,
                                    bool has_bias) {
  std::int64_t outputs = 0;
  for (const std::int64_t part : parts) outputs += part;
  const auto add_parts = [&](const at::Tensor& whole, const std::string& suffix) {
    const auto slices = whole.split_with_sizes(parts);
    std::vector<at::Tensor> added;
    for (std::size_t i = 0; i < names.size(); ++i) {
      added.push_back(add(prefix + names[i] + suffix, slices[i], /*joined=*/i > 0));
    }
    return added;
  };
  Linear linear;
  linear.weights = add_parts(empty({outputs, inputs}), ".weight");
  if (has_bias) linear.biases = add_parts(empty({outputs}), ".bias");
  return linear;
}

std::shared_ptr<const Layer> Decoder::Weights::add_layer(std::int64_t index) {
  const std::string prefix = fmt::format("model.layers.{}.", index);
  const ModelShape& shape = config.shape;
  const std::int64_t q = shape.heads * shape.head_dim;
  const std::int64_t kv = shape.kv_heads * shape.head_dim;
  const auto linear = [&](const std::string& module, const std::vector<std::string>& names,
                          const std::vector<std::int64_t>& parts, std::int64_t inputs,
                          bool has_bias) {
    return add_linear(prefix + module, names, parts, inputs, has_bias);
  };
  const auto layer = std::make_shared<Layer>();
  layer->index = index;
  const std::size_t first = parameters.size();

  AttentionBlock& attention = layer->attention;
  attention.heads = shape.heads;
  attention.kv_heads = shape.kv_heads;
  attention.head_dim = shape.head_dim;
  attention.epsilon = config.norm_epsilon;
  attention.norm_D = add_norm(prefix + "input_layernorm", shape.hidden);
  attention.qkv = linear("self_attn.", {"q_proj", "k_proj", "v_proj"}, {q, kv, kv}, shape.hidden,
                         shape.qkv_bias);
  if (shape.qk_norm) {
    attention.head_norm.q_H = add_norm(prefix + "self_attn.q_norm", shape.head_dim);
    attention.head_norm.k_H = add_norm(prefix + "self_attn.k_norm", shape.head_dim);
    attention.head_norm.epsilon = config.norm_epsilon;
  }
  attention.output = linear("self_attn.", {"o_proj"}, {shape.hidden}, q, shape.output_bias);

  MlpBlock& mlp = layer->mlp;
  mlp.epsilon = config.norm_epsilon;
  mlp.norm_D = add_norm(prefix + "post_attention_layernorm", shape.hidden);
  mlp.gate_up = linear("mlp.", {"gate_proj", "up_proj"}, {shape.ffn, shape.ffn}, shape.hidden,
                       shape.mlp_bias);
  mlp.down = linear("mlp.", {"down_proj"}, {shape.hidden}, shape.ffn, shape.mlp_bias);

  for (std::size_t i = first; i < parameters.size(); ++i) {
    layer->parameters.push_back(parameters[i].value);
  }
  return layer;
}

Decoder::Weights::Weights(const ModelConfig& config_, const DecoderOptions& options_)
    : config(config_), options(options_) {
  const ModelShape& shape = config.shape;
  embedding_VD = add("model.embed_tokens.weight", empty({shape.vocabulary, shape.hidden}));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    layers.push_back(add_layer(i));
  }
  norm_D = add("model.norm.weight", empty({shape.hidden}));
  head_VD = shape.tied_head ? embedding_VD
                            : add("lm_head.weight", empty({shape.vocabulary, shape.hidden}));
}

Decoder::Decoder(const ModelConfig& config, const DecoderOptions& options)
    : weights_(std::make_unique<Weights>(config, options)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

const ModelConfig& Decoder::config() const { return weights_->config; }
const DecoderOptions& Decoder::options() const { return weights_->options; }
const std::vector<Parameter>& Decoder::parameters() const { return weights_->parameters; }
const at::Tensor& Decoder::head_weight() const { return weights_->head_VD; }

at::Tensor Decoder::hidden_TD(const PackedTokens& input, const Dropout& dropout) const {
  constexpr std::string_view where = "decoder";
  const auto& starts = input.cu_seqlens;
  require(!starts.empty() && starts.front() == 0, where, "cu_seqlens starts with {}, must be 0",
          starts.empty() ? "nothing" : std::to_string(starts.front()));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    require(starts[i] > starts[i - 1], where, "cu_seqlens[{}] is {}, must be above {}", i,
            starts[i], starts[i - 1]);
  }
  require(input.tokens_T.dim() == 1 && input.tokens_T.numel() == starts.back(), where,
          "{} tokens, must be {}, where the last sequence ends", input.tokens_T.numel(),
          starts.back());
  return hidden_TD(
      input, local_attention({.cu_queries = starts, .cu_keys = starts}, input.tokens_T.device()),
      dropout);
}

at::Tensor Decoder::hidden_TD(const PackedTokens& input, std::shared_ptr<const Attention> attention,
                              const Dropout& dropout) const {
  require(input.positions_T.sizes() == input.tokens_T.sizes(), "decoder",
          "{} positions, must be one for each of {} tokens", input.positions_T.numel(),
          input.tokens_T.numel());
  require(dropout.probability >= 0 && dropout.probability < 1, "decoder",
          "the probability of dropout is {}, must be at least 0 and below 1", dropout.probability);
  TokenMasks masks;
  if (dropout.probability > 0) {
    const std::int64_t num_rows = input.rows_T.defined() ? input.rows_T.numel() : 0;
    require(num_rows == input.tokens_T.numel(), "decoder",
            "{} rows, must be one for each of {} tokens where there is dropout", num_rows,
            input.tokens_T.numel());
    if (num_rows > 0) masks = TokenMasks(dropout, input.rows_T, input.positions_T);
  }
  const Weights& weights = *weights_;
  const auto pass = std::make_shared<const ForwardPass>(
      ForwardPass{.table = rope_table(weights.config.rope, weights.config.shape.head_dim, input,
                                      weights.options.dtype),
                  .attention = std::move(attention),
                  .masks = std::move(masks),
                  .recompute = weights.options.recompute});
  at::Tensor x_TD = at::embedding(weights.embedding_VD, input.tokens_T,
                                  weights.config.padding_token.value_or(-1));
  for (const auto& layer : weights.layers) x_TD = layer_TD(x_TD, layer, pass);
  return differentiable_rms_norm(x_TD, weights.norm_D, weights.config.norm_epsilon);
}

}  // namespace isochron
