#include "isochron/core/field_text.h"
#include "isochron/cost/analytic.h"
#include "isochron/cost/cost_model.h"
#include "isochron/cost/preset_names.h"

namespace isochron {

CostModel cost_preset(std::string_view name) {
  const std::string key = preset_key(name);
  if (key == "verl") {
    // 12 h^2 s + 2 h s^2 at h = 4096, divided by 2 h: a workload, not a time.
    return {.name = "verl", .quadratic_ns = 1, .linear_ns = 24576};
  }
  for (const std::string& model : model_names()) {
    for (const std::string& hardware : hardware_names()) {
      if (key == model + "_" + hardware) {
        return analytic_cost(model_preset(model), hardware_preset(hardware));
      }
    }
  }
  reject("cost",
         "unknown cost model {}, did you mean \"{}\"? Known are verl and MODEL_HARDWARE with the "
         "models {} and the hardware {}",
         shown_name(name), nearest_name(key, cost_names()), joined(model_names()),
         joined(hardware_names()));
}

std::vector<std::string> cost_names() {
  std::vector<std::string> names = {"verl"};
  for (const std::string& model : model_names()) {
    for (const std::string& hardware : hardware_names()) names.push_back(model + "_" + hardware);
  }
  return names;
}

}  // namespace isochron
