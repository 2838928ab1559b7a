#pragma once

#include "isochron/core/json.h"
#include "isochron/cost/cost_model.h"

namespace isochron {

// A cost model inside a larger document; as to_json and cost_model_from_json.
[[nodiscard]] Json cost_to_json(const CostModel& model);
[[nodiscard]] CostModel cost_from_json(const Json& json);

}  // namespace isochron
