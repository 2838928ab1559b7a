#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "isochron/cost/cost_model.h"

namespace isochron {

// The cost model by name or file, or the analytic one of a model on hardware.
struct CostArguments {
  std::string cost;
  std::string model;
  std::string hardware;
};

void add_cost_flags(CLI::App& verb, CostArguments& arguments);

// The model that the flags name, or the preset `default_name` if there are none. `where` is the
// verb, for messages.
[[nodiscard]] CostModel cost_model_of(const CostArguments& arguments, std::string_view where,
                                      std::string_view default_name);

}  // namespace isochron
