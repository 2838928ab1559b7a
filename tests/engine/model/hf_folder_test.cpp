#include "isochron/engine/model/hf_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "isochron/core/json.h"
#include "isochron/files/safetensors.h"
#include "tests/engine/support/cpu_memory.h"
#include "tests/engine/support/model_reference.h"
#include "tests/engine/support/packed_tokens.h"
#include "tests/engine/support/random_decoder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, gone behind it.
class HfFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("isochron_hf_folder_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A small model in the folder, in shards of at most `max_shard_bytes`.
  void write_model(const std::string& config, std::int64_t max_shard_bytes = 1 << 30) const {
    Decoder decoder(model_config_from_json(config), {});
    randomise(decoder, 1);
    save_decoder(decoder, folder_, at::kFloat, {}, max_shard_bytes);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  [[nodiscard]] Json read_json(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return Json::parse(file);
  }

  // Writes the single file again after `change` of its list of tensors.
  template <class Change>
  void change_tensors(Change change) const {
    const fs::path path = folder_ / "model.safetensors";
    std::vector<std::vector<std::byte>> bytes;
    std::vector<StoredTensor> tensors;
    {
      const SafetensorsFile file(path);
      bytes.reserve(file.tensors().size());
      for (StoredTensor tensor : file.tensors()) {
        bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
        tensor.bytes = bytes.back();
        tensors.push_back(std::move(tensor));
      }
    }
    change(tensors);
    write_safetensors(path, tensors);
  }

  [[nodiscard]] std::string load_message() const {
    return message_of([&] { static_cast<void>(load_decoder(folder_, {})); });
  }

  fs::path folder_;
};

void expect_equal_parameters(const Decoder& actual, const Decoder& expected) {
  ASSERT_EQ(actual.parameters().size(), expected.parameters().size());
  for (std::size_t i = 0; i < actual.parameters().size(); ++i) {
    EXPECT_EQ(actual.parameters()[i].name, expected.parameters()[i].name);
    EXPECT_TRUE(at::equal(actual.parameters()[i].value, expected.parameters()[i].value))
        << actual.parameters()[i].name;
  }
}

TEST_F(HfFolder, WhatIsSavedLoadsAgainWholeOrInShards) {
  for (const std::int64_t max_shard_bytes : {1 << 30, 5000, 1}) {
    Decoder decoder(model_config_from_json(small_config("qwen3")), {});
    randomise(decoder, 7);
    const fs::path target = folder_ / std::to_string(max_shard_bytes);
    save_decoder(decoder, target, at::kFloat, {}, max_shard_bytes);
    EXPECT_EQ(fs::exists(target / "model.safetensors"), max_shard_bytes == 1 << 30);
    for (const auto& entry : fs::directory_iterator(target)) {
      if (max_shard_bytes == 5000 && entry.path().extension() == ".safetensors") {
        EXPECT_LE(entry.file_size(), 5000u + 2000u);  // and its header
      }
    }
    expect_equal_parameters(load_decoder(target, {}), decoder);
  }
}

TEST_F(HfFolder, ConvertsFromAndToEveryFloatingType) {
  Decoder exact(model_config_from_json(small_config("llama")), {.dtype = at::kBFloat16});
  randomise(exact, 3);  // bf16 fits into all the others but fp16, where these stay close
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble}) {
    const fs::path target = folder_ / c10::toString(dtype);
    save_decoder(exact, target, dtype);
    expect_equal_parameters(load_decoder(target, {.dtype = at::kBFloat16}), exact);
    EXPECT_EQ(load_decoder(target, {.dtype = at::kDouble}).parameters()[0].value.scalar_type(),
              at::kDouble);
  }
  save_decoder(exact, folder_ / "half", at::kHalf);
  const Decoder half = load_decoder(folder_ / "half", {});
  EXPECT_LT((half.parameters()[0].value - exact.parameters()[0].value).abs().max().item<double>(),
            1e-3);
}

TEST_F(HfFolder, LoadingHoldsTheWeightsOnce) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 4000})";
  {
    Decoder decoder(model_config_from_json(config), {});
    randomise(decoder, 1);
    save_decoder(decoder, folder_, at::kBFloat16);
  }
  const CpuMemory memory;
  const Decoder decoder = load_decoder(folder_, {});
  std::int64_t weights = 0;
  for (const Parameter& parameter : decoder.parameters()) {
    weights += static_cast<std::int64_t>(parameter.value.nbytes());
  }
  EXPECT_GE(memory.live(), weights);
  EXPECT_LT(memory.peak(), weights + weights / 50);
}

TEST_F(HfFolder, TheConfigurationSaysTheSavedTypeUnderTheNameItHas) {
  Decoder decoder(model_config_from_json(small_config("llama", R"(, "torch_dtype": "float32")")),
                  {});
  randomise(decoder, 1);
  save_decoder(decoder, folder_, at::kBFloat16);
  EXPECT_EQ(read_json("config.json")["torch_dtype"], "bfloat16");
  EXPECT_FALSE(read_json("config.json").contains("dtype"));
  write_model(small_config("llama"));
  EXPECT_EQ(read_json("config.json")["dtype"], "float32");
}

TEST_F(HfFolder, CopiesTokenizerFilesButNoOtherWeights) {
  write("tokenizer.json", "{}");
  write("generation_config.json", "{}");
  write("pytorch_model.bin", "weights");
  write("model-00001-of-00001.safetensors", "weights");
  write("model.safetensors.index.json", "{}");
  write("config.json", "not this one");
  Decoder decoder(model_config_from_json(small_config("llama")), {});
  randomise(decoder, 1);
  const fs::path target = folder_ / "out";
  save_decoder(decoder, target, at::kFloat, folder_);
  EXPECT_TRUE(fs::exists(target / "tokenizer.json"));
  EXPECT_TRUE(fs::exists(target / "generation_config.json"));
  EXPECT_FALSE(fs::exists(target / "pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(target / "model.safetensors.index.json"));
  expect_equal_parameters(load_decoder(target, {}), decoder);
}

TEST_F(HfFolder, NamesATensorThatIsMissingExtraOrMisshapen) {
  write_model(small_config("qwen2"));
  const std::string name = "model.layers.1.self_attn.k_proj.bias";
  const auto is_named = [&](const StoredTensor& tensor) { return tensor.name == name; };
  change_tensors([&](auto& tensors) { std::erase_if(tensors, is_named); });
  EXPECT_EQ(load_message(), "[model] tensor " + name + " is missing");

  write_model(small_config("qwen2"));
  change_tensors([&](auto& tensors) {
    std::find_if(tensors.begin(), tensors.end(), is_named)->shape = {3, 4};
  });
  EXPECT_EQ(load_message(), "[model] tensor " + name + " has shape [3, 4], must have [12]");

  write_model(small_config("qwen2"));
  change_tensors([&](auto& tensors) {
    tensors.push_back(tensors.front());
    tensors.back().name = "model.layers.2.extra.weight";
  });
  EXPECT_EQ(load_message(), "[model] tensor model.layers.2.extra.weight is not one of the model");

  write_model(small_config("qwen2"));
  change_tensors([&](auto& tensors) {
    auto& tensor = *std::find_if(tensors.begin(), tensors.end(), is_named);
    tensor.type = ElementType::I32;
  });
  EXPECT_EQ(load_message(),
            "[model] tensor " + name + " has type I32, must be one of BF16, F16, F32, F64");
}

TEST_F(HfFolder, OldRotaryTablesAndAStoredTiedHeadAreHarmless) {
  write_model(small_config("llama", R"(, "tie_word_embeddings": true)"));
  std::vector<float> other(31 * 24, 1.0F);
  const auto add = [&](const std::string& name, bool is_equal) {
    change_tensors([&](auto& tensors) {
      StoredTensor copy = *std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
        return tensor.name == "model.embed_tokens.weight";
      });
      copy.name = name;
      if (!is_equal) copy.bytes = std::as_bytes(std::span(other));
      tensors.push_back(copy);
    });
  };
  add("model.layers.0.self_attn.rotary_emb.inv_freq", false);
  EXPECT_EQ(load_message(), "accepted");
  add("lm_head.weight", true);
  EXPECT_EQ(load_message(), "accepted");
  write_model(small_config("llama", R"(, "tie_word_embeddings": true)"));
  add("lm_head.weight", false);
  EXPECT_EQ(load_message(),
            "[model] tensor lm_head.weight differs from the embedding, but tie_word_embeddings is "
            "true");
}

TEST_F(HfFolder, AnIndexNamesFilesOfItsOwnFolderAlone) {
  write_model(small_config("llama"), 5000);
  const Json good = read_json("model.safetensors.index.json");
  const std::string tensor = "model.norm.weight";
  for (const char* file : {"../x.safetensors", "/etc/passwd", "a\\b", "..", ""}) {
    Json bad = good;
    bad["weight_map"][tensor] = file;
    write("model.safetensors.index.json", bad.dump());
    EXPECT_EQ(load_message(), "[model.safetensors.index.json] the shard of model.norm.weight is " +
                                  Json(file).dump() +
                                  ", must be the name of a file in the same folder");
  }
}

TEST_F(HfFolder, AnIndexAndItsShardsAgree) {
  write_model(small_config("llama"), 5000);
  const Json good = read_json("model.safetensors.index.json");
  const std::string tensor = "model.norm.weight";
  const std::string home = good["weight_map"][tensor];
  const std::string other = good["weight_map"]["model.embed_tokens.weight"];
  ASSERT_NE(home, other);

  Json wrong = good;
  wrong["weight_map"][tensor] = other;
  write("model.safetensors.index.json", wrong.dump());
  EXPECT_EQ(load_message(), "[model] tensor model.norm.weight is in " + home +
                                ", by model.safetensors.index.json in " + other);

  Json shorter = good;
  shorter["weight_map"].erase(tensor);
  write("model.safetensors.index.json", shorter.dump());
  EXPECT_EQ(load_message(), "[model] tensor model.norm.weight of " + home +
                                " is not in model.safetensors.index.json");

  Json longer = good;
  longer["weight_map"]["model.extra"] = home;
  write("model.safetensors.index.json", longer.dump());
  EXPECT_EQ(load_message(), "[model] tensor model.extra is not in " + home +
                                ", where model.safetensors.index.json has it");

  fs::copy_file(folder_ / home, folder_ / "again.safetensors");
  Json twice = good;
  twice["weight_map"]["model.more"] = "again.safetensors";
  write("model.safetensors.index.json", twice.dump());
  EXPECT_THAT(load_message(), testing::HasSubstr(" is in another shard too"));

  write("model.safetensors.index.json", R"({"weight_map": []})");
  EXPECT_EQ(load_message(),
            "[model.safetensors.index.json] weight_map is a list of 0, must be an object");

  write("model.safetensors.index.json", good.dump());
  fs::remove(folder_ / home);
  EXPECT_THROW(static_cast<void>(load_decoder(folder_, {})), std::runtime_error);
}

TEST_F(HfFolder, AFolderWithoutFilesIsAnErrorOfTheWorld) {
  EXPECT_THROW(static_cast<void>(load_decoder(folder_ / "none", {})), std::runtime_error);
  write("config.json", small_config("llama"));
  EXPECT_THROW(static_cast<void>(load_decoder(folder_, {})), std::runtime_error);
}

TEST_F(HfFolder, AFileThatIsCutOffAnywhereIsAnError) {
  write_model(small_config("llama"));
  const fs::path path = folder_ / "model.safetensors";
  const auto whole = fs::file_size(path);
  for (const std::uintmax_t part : {whole - 1, whole / 2, std::uintmax_t{200}, std::uintmax_t{9},
                                    std::uintmax_t{7}, std::uintmax_t{0}}) {
    fs::resize_file(path, part);
    EXPECT_NE(load_message(), "accepted") << part << " bytes";
  }
}

TEST_F(HfFolder, TransformersLoadsWhatIsSavedAndGivesTheSameLogits) {
  const std::vector<std::string> names = {"llama_bias", "mistral_yarn", "qwen2_tied",
                                          "qwen3_wide_head"};
  std::string arguments;
  for (const std::string& name : names) {
    const ModelReference reference(name);
    const Decoder decoder = load_decoder(reference.folder, {});
    const fs::path target = folder_ / name;
    save_decoder(decoder, target, at::kFloat, reference.folder, 20000);
    const at::NoGradGuard no_grad;
    const PackedTokens input = packed(reference.sequences());
    const at::Tensor logits =
        at::mm(decoder.hidden_TD(input), decoder.head_weight().t()).contiguous();
    const at::Tensor starts = at::tensor(input.cu_seqlens, at::kLong);
    const auto stored = [](const std::string& tensor_name, const at::Tensor& tensor) {
      return StoredTensor{
          .name = tensor_name,
          .type = tensor.scalar_type() == at::kLong ? ElementType::I64 : ElementType::F32,
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
    };
    const std::vector<StoredTensor> tensors = {
        stored("tokens", input.tokens_T), stored("cu_seqlens", starts), stored("logits", logits)};
    fs::create_directories(target / "expected");
    write_safetensors(target / "expected" / "logits.safetensors", tensors);
    arguments += " '" + target.string() + "'";
  }
  const std::string command = std::string("'") + ISOCHRON_PYTHON + "' '" + ISOCHRON_SOURCE_FOLDER +
                              "/tests/reference/check_export.py'" + arguments;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace isochron
