// config.json, field by field. A field is read here or by model_shape_from_config(), may have one
// value alone, does not matter to training, or is refused: what a model was trained with and we
// ignored would show as a worse model, not as an error.

#include "isochron/engine/model/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "isochron/core/json.h"

namespace isochron {

namespace {

constexpr std::string_view where = "model";

// Read, here or by model_shape_from_config().
constexpr std::array used = {"architectures",
                             "attention_bias",
                             "head_dim",
                             "hidden_act",
                             "hidden_size",
                             "initializer_range",
                             "intermediate_size",
                             "layer_types",
                             "max_position_embeddings",
                             "max_window_layers",
                             "mlp_bias",
                             "model_type",
                             "num_hidden_layers",
                             "num_attention_heads",
                             "num_key_value_heads",
                             "pad_token_id",
                             "rms_norm_eps",
                             "rope_parameters",
                             "rope_scaling",
                             "rope_theta",
                             "sliding_window",
                             "tie_word_embeddings",
                             "use_sliding_window",
                             "vocab_size"};

// Of no effect on the function that is trained.
constexpr std::array harmless = {
    // Where the file comes from and what wrote it.
    "_attn_implementation_autoset", "_name_or_path", "name_or_path", "tokenizer_class",
    "transformers_version", "unsloth_fixed", "unsloth_version",
    // How weights are stored, which the safetensors say themselves; how memory is saved, which the
    // recipe says; in how many parts a product was once added up.
    "chunk_size_feed_forward", "dtype", "gradient_checkpointing", "pretraining_tp", "torch_dtype",
    "torchscript", "use_bfloat16", "use_cache",
    // Token ids: rows are tokenised before.
    "begin_suppress_tokens", "bos_token_id", "decoder_start_token_id", "eos_token_id",
    "forced_bos_token_id", "forced_eos_token_id", "sep_token_id", "suppress_tokens",
    // Generation.
    "bad_words_ids", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "length_penalty",
    "max_length", "max_new_tokens", "min_length", "no_repeat_ngram_size", "num_beam_groups",
    "num_beams", "num_return_sequences", "output_attentions", "output_hidden_states",
    "output_scores", "prefix", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "temperature", "top_k", "top_p", "typical_p",
    // Classification heads, which a causal model has not.
    "finetuning_task", "id2label", "label2id", "num_labels", "problem_type",
    "task_specific_params"};

const Json* find_given(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

template <class Names>
bool is_in(const Names& names, std::string_view key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

// True where the value is what a model without the feature has: 0, false, empty, or null.
bool is_off(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  return (value.is_array() || value.is_object()) && value.empty();
}

// Features that we do not have; harmless where they are switched off.
constexpr std::array must_be_off = {
    "add_cross_attention", "attention_dropout", "cross_attention_hidden_size", "embd_pdrop",
    "hidden_dropout",      "is_decoder",        "is_encoder_decoder",          "pruned_heads",
    "quantization_config", "resid_pdrop",       "tie_encoder_decoder",         "use_mrope"};

void require_known_fields(const Json& config) {
  for (const auto& [key, value] : config.items()) {
    if (is_in(used, key) || is_in(harmless, key)) continue;
    if (is_in(must_be_off, key)) {
      require(is_off(value), where, "{} is {}, must be off: it is not implemented", key,
              shown(value));
    } else if (key == "partial_rotary_factor") {
      require(value.is_null() || value == 1, where, "{} is {}, must be 1: it is not implemented",
              key, shown(value));
    } else {
      reject(where, "the field {} of config.json is not known, so its effect is not either",
             shown(key));
    }
  }
}

// What model_shape_from_config() counts in the same way for every family, but transformers does not
// read so.
void require_family_fields(const Json& config, const std::string& model_type,
                           const ModelShape& shape) {
  if (model_type == "mistral" || model_type == "qwen2") {
    const Json* bias = find_given(config, "attention_bias");
    require(bias == nullptr || is_off(*bias), where,
            "attention_bias is {}, must be false: {} has no such field", bias ? shown(*bias) : "",
            model_type);
  }
  if (model_type != "llama") {
    const Json* bias = find_given(config, "mlp_bias");
    require(bias == nullptr || is_off(*bias), where,
            "mlp_bias is {}, must be false: {} has no such field", bias ? shown(*bias) : "",
            model_type);
    require(config.contains("num_key_value_heads"), where,
            "\"num_key_value_heads\" is missing, which {} does not leave out", model_type);
  }
  require(model_type != "qwen3" || find_given(config, "head_dim"), where,
          "\"head_dim\" is missing, which qwen3 does not leave out");
  if (const Json* types = find_given(config, "layer_types")) {
    require(types->is_array() && std::ssize(*types) == shape.layers, where,
            "layer_types is {}, must be a list of {}, one for each layer", shown(*types),
            shape.layers);
    for (std::size_t i = 0; i < types->size(); ++i) {
      require((*types)[i] == "full_attention", where,
              "layer_types[{}] is {}, must be \"full_attention\": a window is not implemented", i,
              shown((*types)[i]));
    }
  }
}

double positive(const Json& value, std::string_view key) {
  const double number = number_of(value, where, key);
  require(number > 0, where, "{} is {}, must be above 0", key, shown(value));
  return number;
}

// The object that says how to scale, under its old or its present name, or null.
const Json* find_rope_object(const Json& config) {
  const Json* scaling = find_given(config, "rope_scaling");
  const Json* parameters = find_given(config, "rope_parameters");
  for (const Json* object : {scaling, parameters}) {
    if (object != nullptr) require_object(*object, where, "rope_parameters");
  }
  require(!scaling || !parameters || *scaling == *parameters, where,
          "rope_scaling and rope_parameters differ, must be the same or one of them");
  return scaling ? scaling : parameters;
}

RopeConfig::Type rope_type_of(const Json& rope) {
  const Json* old_name = find_given(rope, "type");
  const Json* name = find_given(rope, "rope_type");
  require(!old_name || !name || *old_name == *name, where,
          "rope type is {} and rope_type is {}, must be the same", old_name ? shown(*old_name) : "",
          name ? shown(*name) : "");
  if (name == nullptr) name = old_name;
  if (name == nullptr) return RopeConfig::Type::default_;
  constexpr std::array<std::pair<std::string_view, RopeConfig::Type>, 5> types = {
      {{"default", RopeConfig::Type::default_},
       {"linear", RopeConfig::Type::linear},
       {"llama3", RopeConfig::Type::llama3},
       {"yarn", RopeConfig::Type::yarn},
       {"dynamic", RopeConfig::Type::dynamic}}};
  for (const auto& [text, type] : types) {
    if (*name == text) return type;
  }
  reject(where, "rope_type is {}, must be one of default, linear, llama3, yarn, dynamic",
         shown(*name));
}

bool is_rope_key(std::string_view key, RopeConfig::Type type) {
  using enum RopeConfig::Type;
  constexpr std::array of_all = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
  constexpr std::array of_llama3 = {"low_freq_factor", "high_freq_factor"};
  constexpr std::array of_yarn = {"attention_factor", "beta_fast",      "beta_slow",
                                  "mscale",           "mscale_all_dim", "truncate"};
  if (key == "factor") return type != default_;
  if (key == "original_max_position_embeddings") return type == llama3 || type == yarn;
  return is_in(of_all, key) || (type == llama3 && is_in(of_llama3, key)) ||
         (type == yarn && is_in(of_yarn, key));
}

void require_rope_keys(const Json& rope, RopeConfig::Type type) {
  for (const auto& [key, value] : rope.items()) {
    require(is_rope_key(key, type), where,
            "the field {} of rope_parameters is not known for its type", shown(key));
  }
  if (const Json* share = find_given(rope, "partial_rotary_factor")) {
    require(*share == 1, where, "partial_rotary_factor is {}, must be 1: it is not implemented",
            shown(*share));
  }
}

double max_position_of(const Json& config) {
  return static_cast<double>(integer_of(member(config, where, "max_position_embeddings"), where,
                                        "max_position_embeddings", 1, INT64_C(1) << 40));
}

void read_yarn(const Json& rope, const Json& config, RopeConfig& out) {
  const auto given = [&](std::string_view key) -> std::optional<double> {
    const Json* value = find_given(rope, key);
    if (value == nullptr || is_off(*value)) return std::nullopt;  // 0 stands for the default
    return positive(*value, key);
  };
  const Json& factor = member(rope, where, "factor");
  if (factor.is_null()) out.factor = max_position_of(config) / out.original_max_position;
  if (const Json* value = find_given(rope, "attention_factor")) {
    out.attention_factor = positive(*value, "attention_factor");
  }
  out.beta_fast = given("beta_fast").value_or(out.beta_fast);
  out.beta_slow = given("beta_slow").value_or(out.beta_slow);
  out.mscale = given("mscale");
  out.mscale_all_dim = given("mscale_all_dim");
  if (rope.contains("truncate")) {
    out.truncate = field_from_json<bool>(rope["truncate"], where, "truncate");
  }
}

double theta_of(const Json& config, const Json& rope) {
  const Json* outer = find_given(config, "rope_theta");
  const Json* inner = find_given(rope, "rope_theta");
  require(!outer || !inner || *outer == *inner, where,
          "rope_theta is {} and in rope_parameters {}, must be the same",
          outer ? shown(*outer) : "", inner ? shown(*inner) : "");
  const Json* theta = inner ? inner : outer;
  const double value = theta ? positive(*theta, "rope_theta") : 10000;
  require(value > 1, where, "rope_theta is {}, must be above 1", value);
  return value;
}

RopeConfig rope_from_json(const Json& config, std::int64_t head_dim) {
  const Json* object = find_rope_object(config);
  const Json rope = object ? *object : Json::object();
  RopeConfig out;
  out.type = rope_type_of(rope);
  require_rope_keys(rope, out.type);
  out.theta = theta_of(config, rope);
  require(head_dim % 2 == 0, where, "head_dim is {}, must be even: its halves are rotated",
          head_dim);
  using enum RopeConfig::Type;
  if (out.type == default_) return out;

  const Json* factor = find_given(rope, "factor");
  require(factor || (out.type == yarn && rope.contains("factor")), where,
          "\"factor\" of rope_parameters is missing");
  if (factor) {
    out.factor = positive(*factor, "factor");
    require(out.factor >= 1, where, "factor is {}, must be at least 1", shown(*factor));
  }
  if (out.type == dynamic) {
    out.original_max_position = max_position_of(config);
    require(head_dim > 2, where, "head_dim is {}, must be above 2 for dynamic rope", head_dim);
  }
  if (out.type == llama3 || out.type == yarn) {
    const Json* original = find_given(rope, "original_max_position_embeddings");
    out.original_max_position = original ? positive(*original, "original_max_position_embeddings")
                                         : max_position_of(config);
  }
  if (out.type == llama3) {
    out.low_freq_factor = positive(member(rope, where, "low_freq_factor"), "low_freq_factor");
    out.high_freq_factor = positive(member(rope, where, "high_freq_factor"), "high_freq_factor");
    require(out.high_freq_factor > out.low_freq_factor, where,
            "high_freq_factor is {}, must be above low_freq_factor, which is {}",
            out.high_freq_factor, out.low_freq_factor);
  }
  if (out.type == yarn) read_yarn(rope, config, out);
  return out;
}

}  // namespace

ModelConfig model_config_from_json(std::string_view json_text) {
  ModelConfig out;
  out.shape = model_shape_from_config(json_text);
  out.model_type = out.shape.name;
  require(out.shape.sparse_layers == 0, where,
          "model_type is \"{}\", must be one of llama, mistral, qwen2, qwen3: experts are not "
          "implemented",
          out.model_type);

  const Json config = parse_json(json_text, where);
  require_known_fields(config);
  require_family_fields(config, out.model_type, out.shape);
  if (const Json* epsilon = find_given(config, "rms_norm_eps")) {
    out.norm_epsilon = positive(*epsilon, "rms_norm_eps");
  }
  if (const Json* range = find_given(config, "initializer_range")) {
    out.initializer_range = number_of(*range, where, "initializer_range");
  }
  if (const Json* padding = find_given(config, "pad_token_id")) {
    const std::int64_t vocabulary = out.shape.vocabulary;
    const std::int64_t token =
        integer_of(*padding, where, "pad_token_id", -vocabulary, vocabulary - 1);
    out.padding_token = token < 0 ? token + vocabulary : token;  // as torch counts from the end
  }
  out.rope = rope_from_json(config, out.shape.head_dim);
  out.json_text = json_text;
  return out;
}

}  // namespace isochron
