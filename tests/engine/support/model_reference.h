#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "isochron/engine/model/decoder.h"
#include "isochron/files/safetensors.h"

// What tests/reference/make_model_reference.py wrote: models and what transformers computes.

namespace isochron {

inline std::filesystem::path reference_folder() { return ISOCHRON_MODEL_REFERENCE; }

inline std::vector<std::string> reference_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(reference_folder())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct ModelReference {
  std::filesystem::path folder;
  SafetensorsFile file;

  explicit ModelReference(const std::string& name)
      : folder(reference_folder() / name), file(folder / "reference.safetensors") {}

  [[nodiscard]] at::Tensor get(const std::string& name, ElementType type) const {
    const StoredTensor& stored = file.get(name, type);
    return at::from_blob(const_cast<std::byte*>(stored.bytes.data()), stored.shape,
                         at::dtype(type == ElementType::I64 ? at::kLong : at::kFloat))
        .clone();
  }

  [[nodiscard]] std::vector<std::vector<std::int64_t>> sequences() const {
    const at::Tensor tokens = get("tokens", ElementType::I64);
    const at::Tensor lengths = get("lengths", ElementType::I64);
    std::vector<std::vector<std::int64_t>> result;
    const auto* next = tokens.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < lengths.numel(); ++i) {
      const std::int64_t length = lengths[i].item<std::int64_t>();
      result.emplace_back(next, next + length);
      next += length;
    }
    return result;
  }
};

}  // namespace isochron
