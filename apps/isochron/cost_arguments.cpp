#include "apps/isochron/cost_arguments.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "apps/isochron/input_file.h"
#include "apps/isochron/option_flags.h"
#include "isochron/core/require.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

namespace {

// Whether an argument means a file. A preset is never shadowed by a file of the same name: such a
// file is reached as ./verl.
bool is_file(const std::string& text, const std::vector<std::string>& presets) {
  if (text.find('/') != std::string::npos || text.ends_with(".json")) return true;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(presets.begin(), presets.end(), lower) == presets.end() &&
         std::filesystem::exists(text);
}

// A checkpoint is a folder with the file in it.
std::string config_path(const std::string& model) {
  return std::filesystem::is_directory(model) ? model + "/config.json" : model;
}

}  // namespace

void add_cost_flags(CLI::App& verb, CostArguments& arguments, std::string_view default_name) {
  add_text_flag(verb, "--cost", arguments.cost, "name|file",
                fmt::format("what sequences cost: a preset or a JSON file [{}]", default_name));
  add_text_flag(verb, "--model", arguments.model, "name|file",
                "instead: cost of this model (a preset, a config.json or its folder)");
  add_text_flag(verb, "--hardware", arguments.hardware, "name", "on this hardware");
}

void add_recompute_flag(CLI::App& verb, CostArguments& arguments) {
  add_text_flag(verb, "--recompute", arguments.recompute, "none|selective|full",
                "of --model: what the backward computes again [none]");
}

std::vector<CallFile> files_of(const CostArguments& arguments) {
  std::vector<CallFile> files;
  if (is_file(arguments.cost, cost_names())) {
    files.push_back({.flag = "--cost", .path = arguments.cost});
  }
  if (is_file(arguments.model, model_names())) {
    files.push_back({.flag = "--model", .path = config_path(arguments.model)});
  }
  return files;
}

ModelShape model_shape_of(const std::string& text) {
  if (!is_file(text, model_names())) return model_preset(text);
  return model_shape_from_config(read_file(config_path(text)));
}

CostModel cost_model_of(const CostArguments& arguments, std::string_view where,
                        std::string_view default_name, std::int32_t tensor_parallel) {
  const auto& [cost, model, hardware, recompute] = arguments;
  require(cost.empty() || (model.empty() && hardware.empty()), where,
          "--cost is given together with {}, must be one or the other",
          model.empty() ? "--hardware" : "--model");
  require(model.empty() == hardware.empty(), where, "{} is given without {}, must be both",
          model.empty() ? "--hardware" : "--model", model.empty() ? "--model" : "--hardware");
  require(recompute.empty() || cost.empty(), where,
          "--recompute is given together with --cost, must be one or the other");
  require(recompute.empty() || !model.empty(), where,
          "--recompute is given without --model, must be both");
  if (!model.empty()) {
    return analytic_cost(
        model_shape_of(model), hardware_preset(hardware),
        {.tensor_parallel = tensor_parallel, .recompute = recompute_of(arguments, where)});
  }
  if (cost.empty()) return cost_preset(default_name);
  return is_file(cost, cost_names()) ? cost_model_from_json(read_file(cost)) : cost_preset(cost);
}

Recompute recompute_of(const CostArguments& arguments, std::string_view where) {
  if (arguments.recompute.empty()) return Recompute::none;
  return value_from_text<Recompute>(where, "--recompute", arguments.recompute);
}

void require_layers(const CostArguments& arguments, const PipelineShape& pipeline,
                    std::string_view where) {
  if (!arguments.model.empty()) {
    require_layers(model_shape_of(arguments.model), pipeline.stages, pipeline.virtual_, where);
  }
}

}  // namespace isochron
