#include "isochron/engine/model/model_config.h"

#include <gtest/gtest.h>

#include "isochron/core/json.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

// As published: Llama 2, written by transformers 4.31.
constexpr const char* llama_2_7b = R"({"_name_or_path": "meta-llama/Llama-2-7b-hf",
  "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false,
  "torch_dtype": "float16", "transformers_version": "4.31.0.dev0", "use_cache": true,
  "vocab_size": 32000})";

constexpr const char* llama_3_1_8b = R"({"architectures": ["LlamaForCausalLM"],
  "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
  "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})";

constexpr const char* qwen_2_5_7b = R"({"architectures": ["Qwen2ForCausalLM"],
  "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
  "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944,
  "max_position_embeddings": 131072, "max_window_layers": 28, "model_type": "qwen2",
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
  "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064})";

constexpr const char* qwen_3_8b = R"({"architectures": ["Qwen3ForCausalLM"],
  "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
  "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 12288, "max_position_embeddings": 40960,
  "max_window_layers": 36, "model_type": "qwen3", "num_attention_heads": 32,
  "num_hidden_layers": 36, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 151936})";

constexpr const char* mistral_7b_v03 = R"({"architectures": ["MistralForCausalLM"],
  "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
  "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.42.0.dev0", "use_cache": true,
  "vocab_size": 32768})";

// The message for a small configuration with `changes` (an object) put into it.
std::string message_with(const std::string& model_type, const std::string& changes) {
  Json json = parse_json(small_config(model_type), "test");
  const Json changed = parse_json(changes, "test");
  for (const auto& [key, value] : changed.items()) json[key] = value;
  return message_of([&] { static_cast<void>(model_config_from_json(json.dump())); });
}

RopeConfig rope_with(const std::string& changes) {
  return model_config_from_json(small_config("llama", ", " + changes)).rope;
}

TEST(ModelConfig, ReadsPublishedModels) {
  const ModelConfig llama_2 = model_config_from_json(llama_2_7b);
  EXPECT_EQ(llama_2.model_type, "llama");
  EXPECT_EQ(llama_2.norm_epsilon, 1e-5);
  EXPECT_EQ(llama_2.rope, RopeConfig{});
  EXPECT_EQ(llama_2.json_text, llama_2_7b);

  const ModelConfig llama_3 = model_config_from_json(llama_3_1_8b);
  EXPECT_EQ(llama_3.rope, (RopeConfig{.type = RopeConfig::Type::llama3,
                                      .theta = 500000,
                                      .factor = 8,
                                      .original_max_position = 8192}));
  EXPECT_EQ(num_parameters(llama_3.shape), 8030261248);

  const ModelConfig qwen_2 = model_config_from_json(qwen_2_5_7b);
  EXPECT_TRUE(qwen_2.shape.qkv_bias);
  EXPECT_FALSE(qwen_2.shape.output_bias);
  EXPECT_EQ(qwen_2.rope.theta, 1e6);
  EXPECT_EQ(num_parameters(qwen_2.shape), 7615616512);

  EXPECT_TRUE(model_config_from_json(qwen_3_8b).shape.qk_norm);
  EXPECT_EQ(model_config_from_json(mistral_7b_v03).shape.kv_heads, 8);
}

TEST(ModelConfig, ReadsRopeUnderItsOldAndItsPresentName) {
  const RopeConfig linear = {.type = RopeConfig::Type::linear, .theta = 500, .factor = 2};
  EXPECT_EQ(rope_with(R"("rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 2})"),
            linear);
  EXPECT_EQ(rope_with(R"("rope_theta": 500,
                         "rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2})"),
            linear);
  EXPECT_EQ(rope_with(R"("rope_parameters": {"rope_type": "linear", "factor": 2.0,
                                             "rope_theta": 500.0})"),
            linear);
  EXPECT_EQ(rope_with(R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000})"),
            RopeConfig{});
  EXPECT_EQ(
      rope_with(R"("rope_scaling": {"type": "dynamic", "factor": 2})"),
      (RopeConfig{.type = RopeConfig::Type::dynamic, .factor = 2, .original_max_position = 16}));
}

TEST(ModelConfig, YarnTakesTheContextAsItsOriginalAndZeroAsADefault) {
  EXPECT_EQ(rope_with(R"("rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 0,
                                          "mscale": 0, "attention_factor": null})"),
            (RopeConfig{.type = RopeConfig::Type::yarn, .factor = 4, .original_max_position = 16}));
  const RopeConfig all = rope_with(R"("rope_scaling": {"type": "yarn", "factor": null,
      "original_max_position_embeddings": 4, "beta_fast": 16, "beta_slow": 2, "mscale": 0.5,
      "mscale_all_dim": 0.7, "attention_factor": 1.5, "truncate": false})");
  EXPECT_EQ(all, (RopeConfig{.type = RopeConfig::Type::yarn,
                             .factor = 4,
                             .original_max_position = 4,
                             .beta_fast = 16,
                             .beta_slow = 2,
                             .attention_factor = 1.5,
                             .mscale = 0.5,
                             .mscale_all_dim = 0.7,
                             .truncate = false}));
}

TEST(ModelConfig, NamesAFieldThatItDoesNotKnow) {
  EXPECT_EQ(message_with("llama", R"({"logit_scale": 0.5})"),
            "[model] the field \"logit_scale\" of config.json is not known, so its effect is not "
            "either");
  EXPECT_EQ(message_with("llama", R"({"quantization_config": {"bits": 4}})"),
            "[model] quantization_config is an object of 1, must be off: it is not implemented");
  EXPECT_EQ(message_with("qwen3", R"({"attention_dropout": 0.1})"),
            "[model] attention_dropout is 0.1, must be off: it is not implemented");
  EXPECT_EQ(message_with("llama", R"({"partial_rotary_factor": 0.5})"),
            "[model] partial_rotary_factor is 0.5, must be 1: it is not implemented");
  EXPECT_EQ(message_with("llama", R"({"attention_dropout": 0.0, "pruned_heads": {},
                                      "partial_rotary_factor": 1.0})"),
            "accepted");
}

TEST(ModelConfig, RejectsWhatAFamilyDoesNotHave) {
  EXPECT_EQ(message_with("qwen2", R"({"attention_bias": true})"),
            "[model] attention_bias is true, must be false: qwen2 has no such field");
  EXPECT_EQ(message_with("mistral", R"({"mlp_bias": true})"),
            "[model] mlp_bias is true, must be false: mistral has no such field");
  EXPECT_EQ(message_with("qwen3", R"({"head_dim": null})"),
            "[model] \"head_dim\" is missing, which qwen3 does not leave out");
  EXPECT_EQ(message_with("gemma", "{}"),
            "[model] model_type is \"gemma\", must be one of llama, mistral, qwen2, qwen3, "
            "mixtral, qwen3_moe");
  EXPECT_EQ(message_with("mixtral", R"({"num_local_experts": 4, "num_experts_per_tok": 2})"),
            "[model] model_type is \"mixtral\", must be one of llama, mistral, qwen2, qwen3: "
            "experts are not implemented");
}

TEST(ModelConfig, RejectsAWindowOnlyWhereItIsActive) {
  EXPECT_EQ(message_with("mistral", R"({"sliding_window": 4096})"),
            "[model] sliding_window is 4096, must be null: a window is not counted");
  EXPECT_EQ(message_with("qwen2", R"({"use_sliding_window": true, "max_window_layers": 1})"),
            "[model] use_sliding_window is true, must be false: a window is not counted");
  EXPECT_EQ(message_with("qwen3", R"({"layer_types": ["full_attention", "sliding_attention"]})"),
            "[model] layer_types[1] is \"sliding_attention\", must be \"full_attention\": a window "
            "is not implemented");
  EXPECT_EQ(message_with("qwen3", R"({"layer_types": ["full_attention"]})"),
            "[model] layer_types is a list of 1, must be a list of 2, one for each layer");
  EXPECT_EQ(message_with("qwen2", R"({"use_sliding_window": true, "max_window_layers": 2,
                                      "sliding_window": 8})"),
            "accepted");
  EXPECT_EQ(message_with("qwen3", R"({"use_sliding_window": false, "sliding_window": 4096,
                                      "max_window_layers": 0,
                                      "layer_types": ["full_attention", "full_attention"]})"),
            "accepted");
}

TEST(ModelConfig, NamesWhatIsWrongWithTheRope) {
  const auto message = [](const std::string& changes) { return message_with("llama", changes); };
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "longrope", "factor": 2}})"),
            "[model] rope_type is \"longrope\", must be one of default, linear, llama3, yarn, "
            "dynamic");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "linear"}})"),
            "[model] \"factor\" of rope_parameters is missing");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "linear", "factor": 0.5}})"),
            "[model] factor is 0.5, must be at least 1");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "linear", "factor": 2, "alpha": 3}})"),
            "[model] the field \"alpha\" of rope_parameters is not known for its type");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})"),
            "[model] rope type is \"linear\" and rope_type is \"yarn\", must be the same");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "linear", "factor": 2},
                        "rope_parameters": {"rope_type": "default"}})"),
            "[model] rope_scaling and rope_parameters differ, must be the same or one of them");
  EXPECT_EQ(message(R"({"rope_theta": 5, "rope_parameters": {"rope_theta": 6}})"),
            "[model] rope_theta is 5 and in rope_parameters 6, must be the same");
  EXPECT_EQ(message(R"({"rope_theta": 1})"), "[model] rope_theta is 1, must be above 1");
  EXPECT_EQ(message(R"({"rope_scaling": {"type": "llama3", "factor": 2, "low_freq_factor": 4,
                                         "high_freq_factor": 4}})"),
            "[model] high_freq_factor is 4, must be above low_freq_factor, which is 4");
  EXPECT_EQ(message(R"({"head_dim": 7})"),
            "[model] head_dim is 7, must be even: its halves are rotated");
  EXPECT_EQ(message(R"({"head_dim": 2, "rope_scaling": {"type": "dynamic", "factor": 2}})"),
            "[model] head_dim is 2, must be above 2 for dynamic rope");
  EXPECT_EQ(message(R"({"rms_norm_eps": 0})"), "[model] rms_norm_eps is 0, must be above 0");
}

}  // namespace
}  // namespace isochron
