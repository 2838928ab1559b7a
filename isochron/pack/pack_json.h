#pragma once

#include <string>

#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"
#include "isochron/pack/pack.h"

namespace isochron {

// The result of pack() as a document of the schema isochron.pack.v1: all that was asked and
// answered, so that it can be checked alone.
[[nodiscard]] std::string to_json(const Packing& result, const PackOptions& options,
                                  const CostModel& cost, const Batch& batch);

}  // namespace isochron
