#include "tests/engine/train/tiny_run.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "isochron/core/random.h"
#include "isochron/engine/checkpoint/manifest.h"
#include "isochron/engine/model/hf_folder.h"
#include "isochron/engine/model/model_config.h"

namespace isochron {

namespace {

constexpr std::int64_t vocabulary = 32;

constexpr const char* config = R"({{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
  "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": {},
  "head_dim": 8, "intermediate_size": 32, "vocab_size": 32, "tie_word_embeddings": true,
  "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 256,
  "hidden_act": "silu"}})";

// Rows that count upwards from a random token, of very different lengths.
std::string rows(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::string text;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t length = row % 8 == 7 ? random.between(40, 60) : random.between(1, 12);
    const std::int64_t first = random.between(0, vocabulary - 1);
    Json ids = Json::array();
    Json mask = Json::array();
    for (std::int64_t i = 0; i < length; ++i) {
      ids.push_back((first + i) % vocabulary);
      mask.push_back(i == 0 ? 0 : 1);
    }
    text += Json{{"input_ids", ids}, {"loss_mask", mask}}.dump() + "\n";
  }
  return text;
}

}  // namespace

TinyRun::TinyRun(std::int64_t kv_heads) {
  Decoder model(model_config_from_json(fmt::format(config, kv_heads)), {});
  Random random(3);
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : model.parameters()) {
    at::Tensor value = parameter.value;
    float* values = value.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      values[i] = value.dim() == 1 ? 1 : static_cast<float>(random.unit() - 0.5) / 4;
    }
  }
  std::filesystem::create_directories(folder("model"));
  save_decoder(model, folder("model"), at::kFloat);
  files_.write("train.jsonl", rows(50, 1));
  files_.write("val.jsonl", rows(11, 2));
  files_.write("recipe.yaml",
               fmt::format("model: {{path: {}}}\n"
                           "data: {{train_files: {}, train_batch_size: 8, max_length: 64,\n"
                           "       max_token_len_per_gpu: 64}}\n"
                           "optim: {{lr: 0.01}}\n"
                           "trainer: {{device: cpu, total_training_steps: 6}}\n"
                           "engine: {{threads: 1, collective_timeout_s: 60}}\n",
                           folder("model").string(), folder("train.jsonl").string()));
}

std::vector<std::string> TinyRun::call(const std::string& name,
                                       const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"train", folder("recipe.yaml").string(),
                                        "trainer.default_local_dir=" + folder(name).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

EndedProgram TinyRun::run(const std::string& name, const std::vector<std::string>& more) const {
  return StartedProgram(call(name, more), files_.path()).wait();
}

void TinyRun::run_well(const std::string& name, const std::vector<std::string>& more) const {
  const EndedProgram ended = run(name, more);
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
}

std::vector<Json> TinyRun::metrics(const std::string& name) const {
  std::istringstream lines(files_.read(name + "/metrics.jsonl"));
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(parse_json(line, "metrics"));
  return all;
}

std::vector<std::int64_t> TinyRun::steps(const std::string& name) const {
  std::vector<std::int64_t> all;
  for (const Json& line : metrics(name)) all.push_back(line["step"]);
  return all;
}

std::vector<double> TinyRun::losses(const std::string& name) const {
  std::vector<double> all;
  for (const Json& line : metrics(name)) all.push_back(line["data"]["train/loss"]);
  return all;
}

std::vector<std::string> TinyRun::plans(const std::string& name) const {
  std::vector<std::string> all;
  for (const std::int64_t step : steps(name)) {
    all.push_back(files_.read(fmt::format("{}/plans/step_{}.json", name, step)));
  }
  return all;
}

std::vector<std::string> TinyRun::parts(const std::string& name, std::int64_t step) const {
  const std::string checkpoint = fmt::format("{}/global_step_{}", name, step);
  std::vector<std::string> bytes;
  for (const StoredFile& file : read_manifest(files_.path() / checkpoint).files) {
    if (file.name.ends_with(".safetensors"))
      bytes.push_back(files_.read(checkpoint + "/" + file.name));
  }
  return bytes;
}

}  // namespace isochron
