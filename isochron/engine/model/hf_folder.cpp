#include "isochron/engine/model/hf_folder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "isochron/core/json.h"
#include "isochron/files/safetensors.h"

namespace isochron {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view where = "model";
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";
constexpr std::string_view head_name = "lm_head.weight";

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("[model] {} cannot be opened", path.string()));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) throw std::runtime_error(fmt::format("[model] {} cannot be written", path.string()));
}

at::ScalarType scalar_type_of(const StoredTensor& stored) {
  switch (stored.type) {
    case ElementType::F16:
      return at::kHalf;
    case ElementType::BF16:
      return at::kBFloat16;
    case ElementType::F32:
      return at::kFloat;
    case ElementType::F64:
      return at::kDouble;
    default:
      reject(where, "tensor {} has type {}, must be one of BF16, F16, F32, F64", stored.name,
             name_of(stored.type));
  }
}

ElementType element_type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return ElementType::F16;
    case at::kBFloat16:
      return ElementType::BF16;
    case at::kFloat:
      return ElementType::F32;
    case at::kDouble:
      return ElementType::F64;
    default:
      reject(where, "the dtype to save is {}, must be one of bfloat16, float16, float32, float64",
             c10::toString(dtype));
  }
}

// The mapped bytes as a tensor. A file may place them at any address; those that a processor could
// not read so are copied first.
at::Tensor tensor_of(const StoredTensor& stored) {
  const at::ScalarType dtype = scalar_type_of(stored);
  auto* data = const_cast<std::byte*>(stored.bytes.data());
  if (reinterpret_cast<std::uintptr_t>(data) %
          static_cast<std::size_t>(element_bytes(stored.type)) ==
      0) {
    return at::from_blob(data, stored.shape, at::dtype(dtype));
  }
  at::Tensor copy = at::empty(stored.shape, at::dtype(dtype));
  std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<std::byte*>(copy.data_ptr()));
  return copy;
}

// The file of each tensor, as the index says. A name in it is a file of the same folder.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const Json index = parse_json(read_text(path), index_name);
  require_object(index, index_name, "the index");
  const Json& map = member(index, index_name, "weight_map");
  require_object(map, index_name, "weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, value] : map.items()) {
    std::string file = text_of(value, index_name, tensor);
    require(!file.empty() && file != "." && file != ".." &&
                file.find_first_of("/\\") == std::string::npos &&
                file.find('\0') == std::string::npos,
            index_name, "the shard of {} is {}, must be the name of a file in the same folder",
            tensor, shown(value));
    files.emplace(tensor, std::move(file));
  }
  return files;
}

// The tensors of a folder, mapped, by name.
struct Checkpoint {
  std::vector<SafetensorsFile> files;
  std::map<std::string, const StoredTensor*> tensors;

  void add(const fs::path& path) {
    files.emplace_back(path);
    for (const StoredTensor& tensor : files.back().tensors()) {
      require(tensors.emplace(tensor.name, &tensor).second, where,
              "tensor {} of {} is in another shard too", tensor.name, path.filename().string());
    }
  }
};

Checkpoint open_checkpoint(const fs::path& folder) {
  Checkpoint checkpoint;
  if (fs::exists(folder / single_name)) {
    checkpoint.add(folder / single_name);
    return checkpoint;
  }
  if (!fs::exists(folder / index_name)) {
    throw std::runtime_error(
        fmt::format("[model] {} has neither {} nor {}", folder.string(), single_name, index_name));
  }
  const auto file_of = read_index(folder / index_name);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : file_of) shards.insert(file);
  checkpoint.files.reserve(shards.size());
  for (const std::string& shard : shards) checkpoint.add(folder / shard);
  for (const SafetensorsFile& file : checkpoint.files) {
    for (const StoredTensor& tensor : file.tensors()) {
      const auto found = file_of.find(tensor.name);
      require(found != file_of.end(), where, "tensor {} of {} is not in {}", tensor.name,
              file.path().filename().string(), index_name);
      require(found->second == file.path().filename(), where, "tensor {} is in {}, by {} in {}",
              tensor.name, file.path().filename().string(), index_name, found->second);
    }
  }
  for (const auto& [tensor, file] : file_of) {
    require(checkpoint.tensors.contains(tensor), where, "tensor {} is not in {}, where {} has it",
            tensor, file, index_name);
  }
  return checkpoint;
}

std::string text_of_sizes(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return std::move(text).str();
}

void fill(const Parameter& parameter, const Checkpoint& checkpoint) {
  const auto found = checkpoint.tensors.find(parameter.name);
  require(found != checkpoint.tensors.end(), where, "tensor {} is missing", parameter.name);
  const StoredTensor& stored = *found->second;
  require(at::IntArrayRef(stored.shape) == parameter.value.sizes(), where,
          "tensor {} has shape {}, must have {}", parameter.name, text_of_sizes(stored.shape),
          text_of_sizes(parameter.value.sizes()));
  parameter.value.copy_(tensor_of(stored));
}

// What a file may hold beside the parameters: a tied head, if it is the embedding, and the tables
// that old versions stored.
void require_harmless(const StoredTensor& stored, const Decoder& decoder) {
  if (stored.name.ends_with(".rotary_emb.inv_freq")) return;
  if (stored.name == head_name && decoder.config().shape.tied_head) {
    const at::Tensor& embedding = decoder.head_weight();
    require(at::IntArrayRef(stored.shape) == embedding.sizes() &&
                at::equal(tensor_of(stored).to(embedding.options()), embedding),
            where, "tensor {} differs from the embedding, but tie_word_embeddings is true",
            stored.name);
    return;
  }
  reject(where, "tensor {} is not one of the model", stored.name);
}

std::string dtype_name(at::ScalarType dtype) {
  switch (element_type_of(dtype)) {
    case ElementType::BF16:
      return "bfloat16";
    case ElementType::F16:
      return "float16";
    case ElementType::F64:
      return "float64";
    default:
      return "float32";
  }
}

// The document with the type of the saved weights, under the name that it has for it.
std::string config_text(const ModelConfig& config, at::ScalarType dtype) {
  Json json = parse_json(config.json_text, where);
  json[json.contains("torch_dtype") ? "torch_dtype" : "dtype"] = dtype_name(dtype);
  return json.dump(2) + "\n";
}

// Consecutive parameters, as many as fit a shard, at least one.
std::vector<std::span<const Parameter>> shards_of(std::span<const Parameter> parameters,
                                                  at::ScalarType dtype,
                                                  std::int64_t max_shard_bytes) {
  const std::int64_t width = element_bytes(element_type_of(dtype));
  std::vector<std::span<const Parameter>> shards;
  std::size_t first = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t more = parameters[i].value.numel() * width;
    if (i > first && bytes + more > max_shard_bytes) {
      shards.push_back(parameters.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(parameters.subspan(first));
  return shards;
}

void write_shard(const fs::path& path, std::span<const Parameter> parameters,
                 at::ScalarType dtype) {
  std::vector<at::Tensor> values;  // own the bytes
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters) {
    values.push_back(parameter.value.detach().to(at::kCPU, dtype).contiguous());
    const at::Tensor& value = values.back();
    stored.push_back({.name = parameter.name,
                      .type = element_type_of(dtype),
                      .shape = value.sizes().vec(),
                      .bytes = {static_cast<const std::byte*>(value.data_ptr()), value.nbytes()}});
  }
  write_safetensors(path, stored, {{"format", "pt"}});
}

bool is_weights(const fs::path& path) {
  static const std::set<std::string> suffixes = {".bin", ".gguf", ".h5",         ".msgpack",
                                                 ".pt",  ".pth",  ".safetensors"};
  return suffixes.contains(path.extension().string()) ||
         path.filename().string().ends_with(".index.json");
}

void copy_other_files(const fs::path& source, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(source)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || is_weights(name) || name == "config.json") continue;
    fs::copy_file(entry.path(), folder / name, fs::copy_options::overwrite_existing);
  }
}

}  // namespace

Decoder load_decoder(const fs::path& folder, const DecoderOptions& options) {
  const ModelConfig config = model_config_from_json(read_text(folder / "config.json"));
  const Checkpoint checkpoint = open_checkpoint(folder);
  Decoder decoder(config, options);
  const at::NoGradGuard no_grad;
  std::set<std::string_view> names;
  for (const Parameter& parameter : decoder.parameters()) {
    fill(parameter, checkpoint);
    names.insert(parameter.name);
  }
  for (const auto& [name, stored] : checkpoint.tensors) {
    if (!names.contains(name)) require_harmless(*stored, decoder);
  }
  return decoder;
}

void save_decoder(const Decoder& decoder, const fs::path& folder, at::ScalarType dtype,
                  const fs::path& source, std::int64_t max_shard_bytes) {
  save_weights(decoder.config(), decoder.parameters(), folder, dtype, source, max_shard_bytes);
}

void save_weights(const ModelConfig& config, std::span<const Parameter> weights,
                  const fs::path& folder, at::ScalarType dtype, const fs::path& source,
                  std::int64_t max_shard_bytes) {
  fs::create_directories(folder);
  if (!source.empty() && !fs::equivalent(source, folder)) copy_other_files(source, folder);
  write_text(folder / "config.json", config_text(config, dtype));

  const auto shards = shards_of(weights, dtype, max_shard_bytes);
  if (shards.size() == 1) {
    write_shard(folder / single_name, shards.front(), dtype);
    return;
  }
  Json map = Json::object();
  std::int64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_shard(folder / name, shards[i], dtype);
    for (const Parameter& parameter : shards[i]) {
      map[parameter.name] = name;
      total += parameter.value.numel() * element_bytes(element_type_of(dtype));
    }
  }
  write_text(folder / index_name,
             Json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2) + "\n");
}

}  // namespace isochron
