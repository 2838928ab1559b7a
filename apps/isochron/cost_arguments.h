#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "isochron/cost/analytic.h"
#include "isochron/cost/cost_model.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

// The cost model by name or file, or the analytic one of a model on hardware.
struct CostArguments {
  std::string cost;
  std::string model;
  std::string hardware;
};

// `default_name` is what cost_model_of() will be given, for help.
void add_cost_flags(CLI::App& verb, CostArguments& arguments,
                    std::string_view default_name = "verl");

// The model that the flags name, or the preset `default_name` if there are none. `where` is the
// verb, for messages; `analytic` applies to a model on hardware.
[[nodiscard]] CostModel cost_model_of(const CostArguments& arguments, std::string_view where,
                                      std::string_view default_name,
                                      const AnalyticOptions& analytic = {});

// What `--model` means: a preset, a config.json or the folder of one.
[[nodiscard]] ModelShape model_shape_of(const std::string& text);

}  // namespace isochron
