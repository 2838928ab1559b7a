#pragma once

#include "isochron/core/batch.h"
#include "isochron/core/json.h"

namespace isochron {

// Adds the batch to a result: `lengths`, and `group` and `extra_cost_ns` where they were given.
void add_batch(const Batch& batch, Json& json);

}  // namespace isochron
