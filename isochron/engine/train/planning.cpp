#include "isochron/engine/train/planning.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "isochron/core/require.h"
#include "isochron/cost/analytic.h"
#include "isochron/engine/model/activation_memory.h"
#include "isochron/files/mapped_file.h"
#include "isochron/step/step_plan.h"

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

// fp32: two vectors of 8 numbers, multiplied and added, at 2.5 GHz.
constexpr double core_flops = 2 * 8 * 2 * 2.5e9;

// Between processes on hosts: an all-gather of 4 KB takes 0.1 to 0.2 ms, one of megabytes moves 1
// to 2 GB/s. A layer has three: keys and values forward, the same again and their gradients back.
void use_gloo_links(CostModel& cost, std::int64_t layers) {
  constexpr double gb_per_s = 1.5;
  constexpr double latency_us = 3 * 150;
  for (ContextCost& context : cost.context) {
    for (ContextLink& link : context.links) {
      link.gb_per_s = gb_per_s;
      link.latency_us = latency_us * static_cast<double>(layers);
    }
  }
}

std::int64_t host_bytes() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

std::optional<Hardware> find_rank_hardware(const Recipe& recipe, std::int32_t local_ranks) {
  std::optional<Hardware> hardware;
  if (recipe.engine.hardware) {
    hardware = hardware_preset(*recipe.engine.hardware);
  } else if (recipe.trainer.device == DeviceKind::cuda) {
    hardware = find_hardware(cuda_device_name());
  } else {
    hardware = hardware_preset("cpu");
    hardware->hbm_bytes = host_bytes() / local_ranks;
    hardware->peak_flops = core_flops * threads_of_rank(recipe.engine, local_ranks);
    hardware->devices_per_node = local_ranks;
  }
  // A host may run fewer ranks than a node of the preset has devices. Where links span hosts
  // (gb200), the preset is right.
  constexpr std::int64_t devices_of_host = 8;
  if (hardware && hardware->devices_per_node <= devices_of_host) {
    hardware->devices_per_node = std::min<std::int64_t>(hardware->devices_per_node, local_ranks);
  }
  return hardware;
}

CostModel named_cost(const std::string& name) {
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  return is_file ? cost_model_from_json(file_text(name)) : cost_preset(name);
}

CostModel planning_cost(const Recipe& recipe, const ModelShape& model,
                        const std::optional<Hardware>& hardware) {
  const auto with_activations = [&](CostModel cost) {
    const bool in_groups =
        recipe.engine.dynamic_context_parallel || recipe.engine.context_parallel_size > 1;
    cost.activation_bytes_per_token =
        static_cast<double>(activation_bytes(model, {.recompute = recipe.engine.recompute,
                                                     .element_bytes = element_bytes(recipe),
                                                     .in_groups = in_groups})
                                .peak());
    return cost;
  };
  if (recipe.engine.cost) return with_activations(named_cost(*recipe.engine.cost));
  require(hardware.has_value(), "recipe",
          "the device is not known: engine.hardware must be one of {}, or engine.cost given",
          fmt::join(hardware_names(), ", "));
  CostModel cost = analytic_cost(model, *hardware, {.recompute = recipe.engine.recompute});
  for (ContextCost& context : cost.context) {
    // The engine keeps no exchanged heads: queries, keys, values and outputs travel again in the
    // backward beside the gradients, three times instead of twice.
    if (context.kind == ContextKind::all_to_all) context.bytes_per_token *= 1.5;
  }
  // The formulas count bfloat16, 2 bytes an element.
  if (resolved_precision(recipe) == Precision::float32) {
    for (ContextCost& context : cost.context) context.bytes_per_token *= 2;
  }
  if (recipe.trainer.device == DeviceKind::cpu && !recipe.engine.hardware) {
    use_gloo_links(cost, model.layers);
  }
  return with_activations(std::move(cost));
}

Tokens microbatch_capacity(const Recipe& recipe, Tokens longest) {
  const DataOptions& data = recipe.data;
  if (recipe.engine.dynamic_context_parallel) {
    return recipe.engine.max_seqlen_per_dp_cp_rank.value_or(data.max_token_len_per_gpu);
  }
  if (data.use_dynamic_bsz) return data.max_token_len_per_gpu;
  const std::int32_t sharing = recipe.engine.context_parallel_size;
  const Tokens tokens_of_row = padded_length(longest, sharing, 1) / sharing;
  return std::min(max_length, data.micro_batch_size_per_gpu * tokens_of_row);
}

PlanOptions plan_options(const Recipe& recipe, std::int32_t ranks) {
  const ExecutionOptions& engine = recipe.engine;
  PlanOptions options;
  if (engine.dynamic_context_parallel) {
    options.context = engine.context_parallel_sizes == "any" ? "dynamic:any" : "dynamic";
  } else {
    options.context = fmt::format("static:{}", engine.context_parallel_size);
  }
  options.balance = recipe.trainer.balance_batch;
  if (!recipe.data.use_dynamic_bsz) options.max_sequences = recipe.data.micro_batch_size_per_gpu;
  if (recipe.data.pad == Pad::rows) {
    options.pad = Pad::rows;
    options.pad_multiple = ranks;
  }
  return options;
}

std::int32_t threads_of_rank(const ExecutionOptions& engine, std::int32_t local_ranks) {
  if (engine.threads > 0) return engine.threads;
  const auto cores = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  return std::max(1, cores / local_ranks);
}

Precision resolved_precision(const Recipe& recipe) {
  if (recipe.engine.dtype != Precision::automatic) return recipe.engine.dtype;
  return recipe.trainer.device == DeviceKind::cuda ? Precision::bfloat16 : Precision::float32;
}

std::int64_t element_bytes(const Recipe& recipe) {
  return resolved_precision(recipe) == Precision::bfloat16 ? 2 : 4;
}

std::string file_text(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace isochron
