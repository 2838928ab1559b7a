#include "tests/engine/support/plain_decoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "isochron/engine/model/rope.h"

namespace isochron {

namespace {

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * weight;
}

at::Tensor rotated(const at::Tensor& x_TNH, const RopeTable& table) {
  const auto halves = x_TNH.chunk(2, 2);
  const at::Tensor cos = table.cos_TR.unsqueeze(1);
  const at::Tensor sin = table.sin_TR.unsqueeze(1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, 2);
}

// Causal, of one sequence.
at::Tensor attention_SNH(const at::Tensor& q_SNH, const at::Tensor& k_SGH,
                         const at::Tensor& v_SGH) {
  const std::int64_t heads_per_kv = q_SNH.size(1) / k_SGH.size(1);
  const at::Tensor q_NSH = q_SNH.transpose(0, 1);
  const at::Tensor k_NSH = k_SGH.transpose(0, 1).repeat_interleave(heads_per_kv, 0);
  const at::Tensor v_NSH = v_SGH.transpose(0, 1).repeat_interleave(heads_per_kv, 0);
  const at::Tensor scores_NSS =
      q_NSH.matmul(k_NSH.transpose(1, 2)) / std::sqrt(static_cast<double>(q_SNH.size(2)));
  const at::Tensor later = at::ones({q_SNH.size(0), q_SNH.size(0)}, at::kBool).triu(1);
  return scores_NSS.masked_fill(later, -1e300).softmax(-1).matmul(v_NSH).transpose(0, 1);
}

}  // namespace

at::Tensor plain_mask_TD(const PackedTokens& input, const Dropout& dropout, std::int64_t layer,
                         MaskedInput product, std::int64_t width) {
  const std::int64_t tokens = input.tokens_T.numel();
  const at::Tensor mask_TD = at::ones({tokens, width}, at::kDouble);
  if (dropout.probability == 0) return mask_TD;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::uint64_t token =
        token_stream(step_stream(dropout.seed, dropout.step), input.rows_T[t].item<std::int64_t>(),
                     input.positions_T[t].item<std::int64_t>());
    const std::uint64_t stream = number_at(token, input_index(layer, product));
    for (std::int64_t i = 0; i < width; ++i) {
      const std::uint64_t number = number_at(stream, static_cast<std::uint64_t>(i / 2));
      const bool is_kept = half_of(number, i) >= drop_limit(dropout.probability);
      mask_TD[t][i] = is_kept ? 1 / (1 - dropout.probability) : 0;
    }
  }
  return mask_TD;
}

at::Tensor plain_hidden_TD(const Decoder& decoder, const PackedTokens& input,
                           const Dropout& dropout) {
  const ModelConfig& config = decoder.config();
  const ModelShape& shape = config.shape;
  const RopeTable table = rope_table(config.rope, shape.head_dim, input, decoder.options().dtype);
  std::map<std::string, at::Tensor> parameters;
  for (const Parameter& parameter : decoder.parameters()) {
    parameters[parameter.name] = parameter.value;
  }
  const auto product = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor y = x.matmul(parameters.at(name + ".weight").t());
    return parameters.contains(name + ".bias") ? y + parameters.at(name + ".bias") : y;
  };
  const auto heads = [&](const at::Tensor& x) { return x.unflatten(1, {-1, shape.head_dim}); };
  const auto normed_head = [&](const at::Tensor& x_TNH, const std::string& name) {
    return shape.qk_norm ? norm(x_TNH, parameters.at(name), config.norm_epsilon) : x_TNH;
  };

  at::Tensor x_TD = parameters.at("model.embed_tokens.weight").index_select(0, input.tokens_T);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const std::string attention = prefix + "self_attn.";
    const auto masked = [&](const at::Tensor& x, MaskedInput which) {
      return x * plain_mask_TD(input, dropout, layer, which, x.size(1));
    };
    const at::Tensor attended_TD =
        masked(norm(x_TD, parameters.at(prefix + "input_layernorm.weight"), config.norm_epsilon),
               MaskedInput::qkv);
    const at::Tensor q_TNH = rotated(
        normed_head(heads(product(attended_TD, attention + "q_proj")), attention + "q_norm.weight"),
        table);
    const at::Tensor k_TGH = rotated(
        normed_head(heads(product(attended_TD, attention + "k_proj")), attention + "k_norm.weight"),
        table);
    const at::Tensor v_TGH = heads(product(attended_TD, attention + "v_proj"));
    std::vector<at::Tensor> out;
    for (std::size_t i = 0; i + 1 < input.cu_seqlens.size(); ++i) {
      const std::int64_t begin = input.cu_seqlens[i];
      const std::int64_t end = input.cu_seqlens[i + 1];
      out.push_back(attention_SNH(q_TNH.slice(0, begin, end), k_TGH.slice(0, begin, end),
                                  v_TGH.slice(0, begin, end)));
    }
    x_TD =
        x_TD + product(masked(at::cat(out).flatten(1), MaskedInput::output), attention + "o_proj");
    const at::Tensor normed_TD = masked(
        norm(x_TD, parameters.at(prefix + "post_attention_layernorm.weight"), config.norm_epsilon),
        MaskedInput::gate_up);
    const at::Tensor product_TF = at::silu(product(normed_TD, prefix + "mlp.gate_proj")) *
                                  product(normed_TD, prefix + "mlp.up_proj");
    x_TD = x_TD + product(masked(product_TF, MaskedInput::down), prefix + "mlp.down_proj");
  }
  return norm(x_TD, parameters.at("model.norm.weight"), config.norm_epsilon);
}

}  // namespace isochron
