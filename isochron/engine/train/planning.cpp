#include "isochron/engine/train/planning.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "isochron/core/require.h"
#include "isochron/cost/analytic.h"
#include "isochron/files/mapped_file.h"

namespace isochron {

namespace {

// What the driver calls the first device; empty without one.
std::string cuda_device_name() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    folders.push_back(entry.path());
  }
  if (folders.empty()) return "";
  std::ifstream information(*std::min_element(folders.begin(), folders.end()) / "information");
  constexpr std::string_view key = "Model:";
  for (std::string line; std::getline(information, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

std::int64_t host_bytes() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

std::optional<Hardware> find_rank_hardware(const Recipe& recipe, std::int32_t local_ranks) {
  if (recipe.engine.hardware) return hardware_preset(*recipe.engine.hardware);
  if (recipe.trainer.device == DeviceKind::cuda) return find_hardware(cuda_device_name());
  Hardware cpu = hardware_preset("cpu");
  cpu.hbm_bytes = host_bytes() / local_ranks;
  return cpu;
}

CostModel planning_cost(const Recipe& recipe, const ModelShape& model,
                        const std::optional<Hardware>& hardware) {
  if (const auto& cost = recipe.engine.cost) {
    const bool is_file = cost->find('/') != std::string::npos || cost->ends_with(".json");
    return is_file ? cost_model_from_json(file_text(*cost)) : cost_preset(*cost);
  }
  require(hardware.has_value(), "recipe",
          "the device is not known: engine.hardware must be one of {}, or engine.cost given",
          fmt::join(hardware_names(), ", "));
  return analytic_cost(model, *hardware, {.recompute = recipe.engine.recompute});
}

Tokens microbatch_capacity(const DataOptions& data, Tokens longest) {
  if (data.use_dynamic_bsz) return data.max_token_len_per_gpu;
  return data.micro_batch_size_per_gpu * longest;
}

PlanOptions plan_options(const Recipe& recipe, std::int32_t ranks) {
  PlanOptions options;
  options.balance = recipe.trainer.balance_batch;
  if (!recipe.data.use_dynamic_bsz) options.max_sequences = recipe.data.micro_batch_size_per_gpu;
  if (recipe.data.pad == Pad::rows) {
    options.pad = Pad::rows;
    options.pad_multiple = ranks;
  }
  return options;
}

Precision resolved_precision(const Recipe& recipe) {
  if (recipe.engine.dtype != Precision::automatic) return recipe.engine.dtype;
  return recipe.trainer.device == DeviceKind::cuda ? Precision::bfloat16 : Precision::float32;
}

std::string file_text(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace isochron
