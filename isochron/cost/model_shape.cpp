#include "isochron/cost/model_shape.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

#include "isochron/core/int128.h"
#include "isochron/core/json.h"
#include "isochron/cost/preset_names.h"

namespace isochron {

namespace {

constexpr std::string_view where = "model";

// Ten times and more what is in use, and small enough that FLOPs of a batch of 2^31 sequences fit
// 128 bits and those of a token 64.
constexpr std::int64_t max_layers = std::int64_t{1} << 12;
constexpr std::int64_t max_experts = std::int64_t{1} << 12;
constexpr std::int64_t max_hidden = std::int64_t{1} << 18;
constexpr std::int64_t max_ffn = std::int64_t{1} << 20;
constexpr std::int64_t max_active_ffn = std::int64_t{1} << 24;
constexpr std::int64_t max_vocabulary = std::int64_t{1} << 24;
constexpr std::int64_t max_parameters = std::int64_t{1} << 56;

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // before "ForCausalLM"
  bool qkv_bias = false;          // fixed; where it is not, `attention_bias` decides
  bool has_attention_bias = false;
  bool has_mlp_bias = false;
  bool qk_norm = false;
};

constexpr std::array<Family, 6> families = {{
    {.model_type = "llama",
     .architecture = "Llama",
     .has_attention_bias = true,
     .has_mlp_bias = true},
    {.model_type = "mistral", .architecture = "Mistral"},
    {.model_type = "qwen2", .architecture = "Qwen2", .qkv_bias = true},
    {.model_type = "qwen3", .architecture = "Qwen3", .has_attention_bias = true, .qk_norm = true},
    {.model_type = "mixtral", .architecture = "Mixtral"},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3Moe",
     .has_attention_bias = true,
     .qk_norm = true},
}};

const Json* find_member(const Json& config, std::string_view key) {
  const auto found = config.find(std::string(key));
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t size_of(const Json& config, std::string_view key, std::int64_t high) {
  return integer_of(member(config, where, key), where, key, 1, high);
}

bool flag_or_false(const Json& config, std::string_view key) {
  const Json* found = find_member(config, key);
  return found != nullptr && field_from_json<bool>(*found, where, key);
}

const Family& family_of(const Json& config) {
  std::vector<std::string> known;
  for (const Family& family : families) known.emplace_back(family.model_type);
  if (const Json* type = find_member(config, "model_type")) {
    const std::string name = text_of(*type, where, "model_type");
    for (const Family& family : families) {
      if (name == family.model_type) return family;
    }
    reject(where, "model_type is {}, must be one of {}", shown(*type), joined(known));
  }
  const Json* architectures = find_member(config, "architectures");
  require(architectures != nullptr, where, "\"model_type\" is missing, must be one of {}",
          joined(known));
  require(architectures->is_array() && !architectures->empty(), where,
          "architectures is {}, must be a list with a name", shown(*architectures));
  const std::string name = text_of(architectures->front(), where, "architectures[0]");
  for (const Family& family : families) {
    if (name == std::string(family.architecture) + "ForCausalLM") return family;
  }
  reject(where, "architectures[0] is {}, must be the ForCausalLM of one of {}",
         shown(architectures->front()), joined(known));
}

// Mistral has a window unless the configuration says null, mixtral if it gives one, the others if
// they are told to use it, from layer max_window_layers on.
void require_no_window(const Json& config, const Family& family, std::int64_t layers) {
  const auto window = config.find("sliding_window");
  const bool is_missing = window == config.end();
  const bool is_null = !is_missing && window->is_null();
  if (family.model_type == "mistral" || family.model_type == "mixtral") {
    require(!is_missing || family.model_type == "mixtral", where,
            "\"sliding_window\" is missing, which mistral reads as 4096, must be null: a window is "
            "not counted");
    require(is_missing || is_null, where,
            "sliding_window is {}, must be null: a window is not counted",
            is_missing ? "" : shown(*window));
  } else if (flag_or_false(config, "use_sliding_window") && !is_null) {
    const Json* first = find_member(config, "max_window_layers");
    const bool is_beyond =
        first && integer_of(*first, where, "max_window_layers", 0, INT64_MAX) >= layers;
    require(is_beyond, where, "use_sliding_window is true, must be false: a window is not counted");
  }
}

std::int64_t num_sparse_layers(const Json& config, std::int64_t layers) {
  std::int64_t step = 1;
  if (const Json* found = find_member(config, "decoder_sparse_step")) {
    step = integer_of(*found, where, "decoder_sparse_step", 1, max_layers);
  }
  std::set<std::int64_t> dense;
  if (const Json* found = find_member(config, "mlp_only_layers")) {
    require(found->is_array(), where, "mlp_only_layers is {}, must be a list of layers",
            shown(*found));
    for (std::size_t i = 0; i < found->size(); ++i) {
      dense.insert(
          integer_of((*found)[i], where, fmt::format("mlp_only_layers[{}]", i), 0, layers - 1));
    }
  }
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    count += (layer + 1) % step == 0 && !dense.contains(layer);
  }
  return count;
}

// 128 bits: the largest shape that passes the other checks has more than 2^63.
Int128 parameters_of(const ModelShape& shape) {
  const Int128 h = shape.hidden;
  const Int128 q = Int128{shape.heads} * shape.head_dim;
  const Int128 kv = Int128{shape.kv_heads} * shape.head_dim;
  const Int128 attention = 2 * h * q + 2 * h * kv + (shape.qkv_bias ? q + 2 * kv : 0) +
                           (shape.output_bias ? h : 0) + (shape.qk_norm ? 2 * shape.head_dim : 0);
  const Int128 dense = 3 * h * shape.ffn + (shape.mlp_bias ? 2 * Int128{shape.ffn} + h : 0);
  const Int128 sparse =
      3 * h * (shape.num_experts * shape.moe_ffn + shape.shared_ffn) + h * shape.num_experts;
  const Int128 norms = 2 * h;
  return (shape.tied_head ? 1 : 2) * h * shape.vocabulary + shape.layers * (attention + norms) +
         (shape.layers - shape.sparse_layers) * dense + shape.sparse_layers * sparse + h;
}

void require_range(std::string_view field, std::int64_t value, std::int64_t low,
                   std::int64_t high) {
  require(value >= low && value <= high, where, "{} is {}, must be an integer from {} to {}", field,
          value, low, high);
}

const std::vector<ModelShape>& presets() {
  const auto qwen2 = [](ModelShape shape) {
    shape.qkv_bias = true;
    return shape;
  };
  const auto qwen3 = [](ModelShape shape) {
    shape.qk_norm = true;
    return shape;
  };
  // name, hidden, layers, heads, kv_heads, head_dim, ffn, vocabulary, tied_head
  static const std::vector<ModelShape> shapes = {
      qwen2({"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, true}),
      qwen2({"qwen2.5-7b", 3584, 28, 28, 4, 128, 18944, 152064, false}),
      qwen3({"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, true}),
      qwen3({"qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, true}),
      qwen3({"qwen3-8b", 4096, 36, 32, 8, 128, 12288, 151936, false}),
      qwen3({"qwen3-32b", 5120, 64, 64, 8, 128, 25600, 151936, false}),
      {"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, false},
      {"llama-3-70b", 8192, 80, 64, 8, 128, 28672, 128256, false},
  };
  return shapes;
}

}  // namespace

void require_valid(const ModelShape& shape) {
  require_range("hidden", shape.hidden, 1, max_hidden);
  require_range("layers", shape.layers, 1, max_layers);
  require_range("heads", shape.heads, 1, max_hidden);
  require_range("kv_heads", shape.kv_heads, 1, max_hidden);
  require_range("head_dim", shape.head_dim, 1, max_hidden);
  require_range("heads * head_dim", shape.heads * shape.head_dim, 1, max_hidden);
  require(shape.heads % shape.kv_heads == 0, where,
          "heads is {}, must be a multiple of kv_heads, which is {}", shape.heads, shape.kv_heads);
  require_range("vocabulary", shape.vocabulary, 1, max_vocabulary);
  require_range("sparse_layers", shape.sparse_layers, 0, shape.layers);
  require_range("ffn", shape.ffn, shape.sparse_layers < shape.layers ? 1 : 0, max_ffn);
  const std::int64_t least = shape.sparse_layers > 0 ? 1 : 0;
  require_range("num_experts", shape.num_experts, least, max_experts);
  require_range("experts_per_token", shape.experts_per_token, least, shape.num_experts);
  require_range("moe_ffn", shape.moe_ffn, least, max_ffn);
  require_range("shared_ffn", shape.shared_ffn, 0, max_ffn);
  require_range("experts_per_token * moe_ffn + shared_ffn",
                shape.experts_per_token * shape.moe_ffn + shape.shared_ffn, least, max_active_ffn);
  require(parameters_of(shape) <= max_parameters, where,
          "the shape has more than 2^56 parameters, must have fewer");
}

ModelShape model_shape_from_config(std::string_view json_text) {
  const Json config = parse_json(json_text, where);
  require_object(config, where, "the configuration");
  const Family& family = family_of(config);
  const bool is_mixtral = family.model_type == "mixtral";

  ModelShape shape;
  shape.name = family.model_type;
  shape.hidden = size_of(config, "hidden_size", max_hidden);
  shape.layers = size_of(config, "num_hidden_layers", max_layers);
  shape.heads = size_of(config, "num_attention_heads", max_hidden);
  shape.kv_heads = find_member(config, "num_key_value_heads")
                       ? size_of(config, "num_key_value_heads", max_hidden)
                       : shape.heads;
  require(shape.heads % shape.kv_heads == 0, where,
          "num_attention_heads is {}, must be a multiple of num_key_value_heads, which is {}",
          shape.heads, shape.kv_heads);
  if (find_member(config, "head_dim")) {
    shape.head_dim = size_of(config, "head_dim", max_hidden);
  } else {
    require(
        shape.hidden % shape.heads == 0, where,
        "hidden_size is {}, must be a multiple of num_attention_heads, which is {}, or head_dim "
        "given",
        shape.hidden, shape.heads);
    shape.head_dim = shape.hidden / shape.heads;
  }
  shape.ffn = size_of(config, "intermediate_size", max_ffn);
  shape.vocabulary = size_of(config, "vocab_size", max_vocabulary);
  shape.tied_head = flag_or_false(config, "tie_word_embeddings");  // the default of each family
  shape.output_bias = family.has_attention_bias && flag_or_false(config, "attention_bias");
  shape.qkv_bias = family.qkv_bias || shape.output_bias;
  shape.mlp_bias = family.has_mlp_bias && flag_or_false(config, "mlp_bias");
  shape.qk_norm = family.qk_norm;
  if (is_mixtral || family.model_type == "qwen3_moe") {
    shape.sparse_layers = is_mixtral ? shape.layers : num_sparse_layers(config, shape.layers);
    shape.num_experts =
        size_of(config, is_mixtral ? "num_local_experts" : "num_experts", max_experts);
    shape.experts_per_token = size_of(config, "num_experts_per_tok", shape.num_experts);
    shape.moe_ffn = is_mixtral ? shape.ffn : size_of(config, "moe_intermediate_size", max_ffn);
  }
  if (const Json* act = find_member(config, "hidden_act")) {
    require(*act == "silu", where, "hidden_act is {}, must be \"silu\"", shown(*act));
  }
  require_no_window(config, family, shape.layers);
  require_valid(shape);
  return shape;
}

ModelShape model_preset(std::string_view name) {
  std::string key = preset_key(name);
  if (key == "7b") key = "qwen2.5-7b";
  for (const ModelShape& shape : presets()) {
    if (shape.name == key) return shape;
  }
  reject_unknown(where, "model", name, model_names());
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelShape& shape : presets()) names.push_back(shape.name);
  return names;
}

void require_layers(const ModelShape& shape, std::int32_t stages, std::int32_t virtual_,
                    std::string_view where) {
  const std::int64_t chunks = std::int64_t{stages} * virtual_;
  require(chunks <= shape.layers, where, "there are {} {}, must be at most {}, the layers of {}",
          chunks, virtual_ == 1 ? "stages" : fmt::format("chunks on {} stages", stages),
          shape.layers, shape.name);
}

std::int64_t num_parameters(const ModelShape& shape) {
  require_valid(shape);
  return static_cast<std::int64_t>(parameters_of(shape));
}

}  // namespace isochron
