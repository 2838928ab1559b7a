#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/isochron/call_files.h"
#include "isochron/cost/analytic.h"
#include "isochron/cost/cost_model.h"
#include "isochron/cost/model_shape.h"
#include "isochron/step/topology.h"

namespace isochron {

// The cost model by name or file, or the analytic one of a model on hardware.
struct CostArguments {
  std::string cost;
  std::string model;
  std::string hardware;
  std::string recompute;  // of a model on hardware, for verbs that ask

  [[nodiscard]] bool is_given() const {
    return !cost.empty() || !model.empty() || !hardware.empty();
  }
};

// `default_name` is what cost_model_of() will be given, for help.
void add_cost_flags(CLI::App& verb, CostArguments& arguments,
                    std::string_view default_name = "verl");

void add_recompute_flag(CLI::App& verb, CostArguments& arguments);

// The model that the flags name, or the preset `default_name` if there are none. `where` is the
// verb, for messages; `tensor_parallel` applies to a model on hardware.
[[nodiscard]] CostModel cost_model_of(const CostArguments& arguments, std::string_view where,
                                      std::string_view default_name,
                                      std::int32_t tensor_parallel = 1);

// What `--recompute` means; none if it is not given.
[[nodiscard]] Recompute recompute_of(const CostArguments& arguments, std::string_view where);

// Rejects a pipeline of more chunks than the model has layers, where the flags name a model.
void require_layers(const CostArguments& arguments, const PipelineShape& pipeline,
                    std::string_view where);

// The files that cost_model_of() reads.
[[nodiscard]] std::vector<CallFile> files_of(const CostArguments& arguments);

// What `--model` means: a preset, a config.json or the folder of one.
[[nodiscard]] ModelShape model_shape_of(const std::string& text);

}  // namespace isochron
