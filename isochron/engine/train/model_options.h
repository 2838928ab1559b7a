#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/fields.h"

namespace isochron {

// Which model is trained.
struct ModelOptions {
  std::string path = {};
  std::optional<bool> enable_gradient_checkpointing = {};
  double dropout = 0;
  std::int64_t lora_rank = 0;
  double lora_alpha = 16;
  double lora_dropout = 0;
  bool use_rslora = false;
  std::vector<std::string> target_modules = {"all-linear"};
  std::optional<std::vector<std::string>> exclude_modules = {};
  std::optional<std::string> lora_adapter_path = {};

  template <class Row>
  static void describe(Row row) {
    using Self = ModelOptions;
    row(Field{"model.path", &Self::path, "required: a Hugging Face folder"});
    row(Field{"model.enable_gradient_checkpointing", &Self::enable_gradient_checkpointing,
              "true: engine.recompute full, false: none; null leaves it to that key"});
    row(Field{"model.dropout", &Self::dropout,
              "probability that training drops an input of a linear product of a layer; masks are "
              "functions of engine.seed, step, row and position"});
    row(Field{"model.lora_rank", &Self::lora_rank, "0: all weights are trained"});
    row(Field{"model.lora_alpha", &Self::lora_alpha, "scale of the adapters, times their rank"});
    row(Field{"model.lora_dropout", &Self::lora_dropout, "in front of the adapters"});
    row(Field{"model.use_rslora", &Self::use_rslora, "scale by the root of the rank"});
    row(Field{"model.target_modules", &Self::target_modules, "modules that get an adapter"});
    row(Field{"model.exclude_modules", &Self::exclude_modules, "modules that get none"});
    row(Field{"model.lora_adapter_path", &Self::lora_adapter_path, "an adapter to start from"});
  }
};

}  // namespace isochron
