#include "isochron/cost/model_shape.h"

#include <gtest/gtest.h>

#include <string>

#include "isochron/core/json.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

constexpr std::string_view qwen2_text = R"({"architectures": ["Qwen2ForCausalLM"],
  "model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14,
  "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "hidden_act": "silu",
  "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": 32768,
  "max_window_layers": 21, "torch_dtype": "bfloat16"})";

constexpr std::string_view mixtral_text = R"({"model_type": "mixtral", "hidden_size": 4096,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null,
  "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
  "num_experts_per_tok": 2, "sliding_window": null, "tie_word_embeddings": false})";

constexpr std::string_view qwen3_moe_text = R"({"model_type": "qwen3_moe", "hidden_size": 2048,
  "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
  "intermediate_size": 6144, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
  "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": []})";

// `text` with the members of `patch` in place of its own; a member that is "absent" goes.
ModelShape shape_of(std::string_view text, std::string_view patch = "{}") {
  Json config = Json::parse(text);
  const Json changes = Json::parse(patch);
  for (const auto& [key, value] : changes.items()) {
    if (value == "absent") {
      config.erase(key);
    } else {
      config[key] = value;
    }
  }
  return model_shape_from_config(config.dump());
}

std::string message_for(std::string_view text, std::string_view patch) {
  return message_of([&] { (void)shape_of(text, patch); });
}

TEST(ModelShape, CountsThePublishedParameters) {
  EXPECT_EQ(num_parameters(model_preset("qwen2.5-0.5b")), 494'032'768);
  EXPECT_EQ(num_parameters(model_preset("qwen2.5-7b")), 7'615'616'512);
  EXPECT_EQ(num_parameters(model_preset("qwen3-0.6b")), 596'049'920);
  EXPECT_EQ(num_parameters(model_preset("qwen3-4b")), 4'022'468'096);
  EXPECT_EQ(num_parameters(model_preset("qwen3-8b")), 8'190'735'360);
  EXPECT_EQ(num_parameters(model_preset("qwen3-32b")), 32'762'123'264);
  EXPECT_EQ(num_parameters(model_preset("llama-3-8b")), 8'030'261'248);
  EXPECT_EQ(num_parameters(model_preset("llama-3-70b")), 70'553'706'496);
  EXPECT_EQ(num_parameters(shape_of(mixtral_text)), 46'702'792'704);
  EXPECT_EQ(num_parameters(shape_of(qwen3_moe_text)), 30'532'122'624);
}

TEST(ModelShape, CountsATinyModelByHand) {
  const ModelShape shape = {.name = "tiny",
                            .hidden = 4,
                            .layers = 3,
                            .heads = 2,
                            .kv_heads = 1,
                            .head_dim = 2,
                            .ffn = 5,
                            .vocabulary = 10,
                            .tied_head = false,
                            .qkv_bias = true,
                            .output_bias = true,
                            .mlp_bias = true,
                            .qk_norm = true,
                            .sparse_layers = 1,
                            .num_experts = 3,
                            .experts_per_token = 2,
                            .moe_ffn = 7,
                            .shared_ffn = 6};
  const std::int64_t attention = 4 * 4 + 2 * (4 * 2) + 4 * 4 + (4 + 2 + 2) + 4 + 2 * 2;
  const std::int64_t dense = 3 * 4 * 5 + (5 + 5 + 4);
  const std::int64_t sparse = 3 * (3 * 4 * 7) + 3 * 4 * 6 + 4 * 3;
  EXPECT_EQ(num_parameters(shape), 2 * 40 + 3 * (attention + 2 * 4) + 2 * dense + sparse + 4);
}

TEST(ModelShape, ReadsTheConfigurationOfAPreset) {
  ModelShape shape = shape_of(qwen2_text);
  EXPECT_EQ(shape.name, "qwen2");
  shape.name = "qwen2.5-0.5b";
  EXPECT_EQ(shape, model_preset("Qwen2.5-0.5B"));
}

TEST(ModelShape, FallsBackToArchitectures) {
  EXPECT_EQ(shape_of(qwen2_text, R"({"model_type": "absent"})"), shape_of(qwen2_text));
  EXPECT_EQ(message_for(qwen2_text, R"({"model_type": "absent", "architectures": ["GptForX"]})"),
            "[model] architectures[0] is \"GptForX\", must be the ForCausalLM of one of llama, "
            "mistral, qwen2, qwen3, mixtral, qwen3_moe");
  EXPECT_EQ(message_for(qwen2_text, R"({"model_type": null, "architectures": []})"),
            "[model] architectures is a list of 0, must be a list with a name");
  EXPECT_EQ(message_of([] { (void)model_shape_from_config("{}"); }),
            "[model] \"model_type\" is missing, must be one of llama, mistral, qwen2, qwen3, "
            "mixtral, qwen3_moe");
}

TEST(ModelShape, HasTheDefaultsOfTheFamily) {
  const ModelShape llama = shape_of(qwen2_text, R"({"model_type": "llama",
      "num_key_value_heads": "absent", "tie_word_embeddings": "absent"})");
  EXPECT_EQ(llama.kv_heads, 14);
  EXPECT_EQ(llama.head_dim, 64);
  EXPECT_FALSE(llama.tied_head);
  EXPECT_FALSE(llama.qkv_bias);
  EXPECT_FALSE(llama.qk_norm);
  EXPECT_TRUE(shape_of(qwen2_text).qkv_bias);
  EXPECT_FALSE(shape_of(qwen2_text).output_bias);
  EXPECT_TRUE(shape_of(qwen2_text, R"({"model_type": "qwen3"})").qk_norm);
  const ModelShape biased =
      shape_of(qwen2_text, R"({"model_type": "llama", "attention_bias": true, "mlp_bias": true})");
  EXPECT_TRUE(biased.qkv_bias && biased.output_bias && biased.mlp_bias);
  EXPECT_EQ(shape_of(mixtral_text).head_dim, 128);
}

TEST(ModelShape, KnowsWhichLayersHaveExperts) {
  EXPECT_EQ(shape_of(qwen3_moe_text).sparse_layers, 48);
  EXPECT_EQ(shape_of(qwen3_moe_text, R"({"mlp_only_layers": [0, 1, 47, 1]})").sparse_layers, 45);
  // Every second layer, counted from 1: 24 of them, of which layer 1 is dense.
  EXPECT_EQ(shape_of(qwen3_moe_text, R"({"decoder_sparse_step": 2, "mlp_only_layers": [0, 1]})")
                .sparse_layers,
            23);
  EXPECT_EQ(message_for(qwen3_moe_text, R"({"mlp_only_layers": [48]})"),
            "[model] mlp_only_layers[0] is 48, must be an integer from 0 to 47");
  EXPECT_EQ(message_for(qwen3_moe_text, R"({"mlp_only_layers": 1})"),
            "[model] mlp_only_layers is 1, must be a list of layers");
}

TEST(ModelShape, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(message_for(qwen2_text, R"({"model_type": "gpt2"})"),
            "[model] model_type is \"gpt2\", must be one of llama, mistral, qwen2, qwen3, mixtral, "
            "qwen3_moe");
  EXPECT_EQ(message_for(qwen2_text, R"({"hidden_size": "absent"})"),
            "[model] \"hidden_size\" is missing");
  EXPECT_EQ(message_for(qwen2_text, R"({"num_hidden_layers": 0})"),
            "[model] num_hidden_layers is 0, must be an integer from 1 to 4096");
  EXPECT_EQ(message_for(qwen2_text, R"({"vocab_size": "many"})"),
            "[model] vocab_size is \"many\", must be an integer from 1 to 16777216");
  EXPECT_EQ(message_for(qwen2_text, R"({"num_key_value_heads": 4})"),
            "[model] num_attention_heads is 14, must be a multiple of num_key_value_heads, which "
            "is 4");
  EXPECT_EQ(message_for(qwen2_text, R"({"hidden_size": 900})"),
            "[model] hidden_size is 900, must be a multiple of num_attention_heads, which is 14, "
            "or head_dim given");
  EXPECT_EQ(message_for(qwen2_text, R"({"hidden_act": "gelu"})"),
            "[model] hidden_act is \"gelu\", must be \"silu\"");
  EXPECT_EQ(message_for(mixtral_text, R"({"num_experts_per_tok": 9})"),
            "[model] num_experts_per_tok is 9, must be an integer from 1 to 8");
  EXPECT_EQ(message_for(qwen2_text, R"({"tie_word_embeddings": 1})"),
            "[model] tie_word_embeddings is 1, must be true or false");
  EXPECT_EQ(message_of([] { (void)model_shape_from_config("[1]"); }),
            "[model] the configuration is a list of 1, must be an object");
  EXPECT_EQ(message_of([] { (void)model_shape_from_config("{"); }),
            "[model] line 1 is not valid JSON at byte 2 of the text");
}

TEST(ModelShape, RejectsAWindowThatIsActive) {
  EXPECT_EQ(message_for(mixtral_text, R"({"sliding_window": 4096})"),
            "[model] sliding_window is 4096, must be null: a window is not counted");
  EXPECT_EQ(message_for(mixtral_text, R"({"sliding_window": "absent"})"), "accepted");
  EXPECT_EQ(message_for(mixtral_text, R"({"model_type": "mistral"})"), "accepted");
  EXPECT_EQ(message_for(mixtral_text, R"({"model_type": "mistral", "sliding_window": "absent"})"),
            "[model] \"sliding_window\" is missing, which mistral reads as 4096, must be null: a "
            "window is not counted");
  EXPECT_EQ(message_for(qwen2_text, R"({"use_sliding_window": true})"),
            "[model] use_sliding_window is true, must be false: a window is not counted");
  EXPECT_EQ(message_for(qwen2_text, R"({"use_sliding_window": true, "max_window_layers": 24})"),
            "accepted");
  EXPECT_EQ(message_for(qwen2_text, R"({"use_sliding_window": true, "sliding_window": null})"),
            "accepted");
}

TEST(ModelShape, RejectsWhatDoesNotFitTheCounts) {
  ModelShape shape = model_preset("llama-3-8b");
  shape.heads = 0;
  EXPECT_EQ(message_of([&] { require_valid(shape); }),
            "[model] heads is 0, must be an integer from 1 to 262144");
  shape = model_preset("llama-3-8b");
  shape.kv_heads = 5;
  EXPECT_EQ(message_of([&] { require_valid(shape); }),
            "[model] heads is 32, must be a multiple of kv_heads, which is 5");
  shape = model_preset("llama-3-8b");
  shape.head_dim = 1 << 14;
  EXPECT_EQ(message_of([&] { require_valid(shape); }),
            "[model] heads * head_dim is 524288, must be an integer from 1 to 262144");
  shape = model_preset("llama-3-8b");
  shape.sparse_layers = 1;
  EXPECT_EQ(message_of([&] { require_valid(shape); }),
            "[model] num_experts is 0, must be an integer from 1 to 4096");
  shape = model_preset("llama-3-8b");
  shape.hidden = 1 << 18;
  shape.layers = shape.sparse_layers = 1 << 12;
  shape.num_experts = 1 << 12;
  shape.experts_per_token = 1;
  shape.moe_ffn = 1 << 20;
  EXPECT_EQ(message_of([&] { require_valid(shape); }),
            "[model] the shape has more than 2^56 parameters, must have fewer");
}

TEST(ModelPreset, IsFoundInAnyCaseAndNamesTheNearest) {
  for (const std::string& name : model_names()) EXPECT_EQ(model_preset(name).name, name);
  EXPECT_EQ(model_preset("Llama-3-8B"), model_preset("llama-3-8b"));
  EXPECT_EQ(model_preset("7b").name, "qwen2.5-7b");
  EXPECT_EQ(message_of([] { (void)model_preset("Qwen3-8C"); }),
            "[model] unknown model \"Qwen3-8C\", did you mean \"qwen3-8b\"? Known are "
            "qwen2.5-0.5b, qwen2.5-7b, qwen3-0.6b, qwen3-4b, qwen3-8b, qwen3-32b, llama-3-8b, "
            "llama-3-70b");
  const std::string hostile = message_of([] { (void)model_preset(std::string(1 << 20, '\n')); });
  EXPECT_EQ(hostile.find('\n'), std::string::npos);
  EXPECT_LT(hostile.size(), 300u);
}

}  // namespace
}  // namespace isochron
