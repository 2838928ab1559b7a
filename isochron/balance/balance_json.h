#pragma once

#include <cstdint>
#include <string>

#include "isochron/balance/balance.h"
#include "isochron/core/batch.h"
#include "isochron/cost/cost_model.h"

namespace isochron {

// The result of balance() as a document of the schema isochron.balance.v1: all that was asked and
// answered, so that it can be checked alone.
[[nodiscard]] std::string to_json(const Balance& result, std::int32_t ranks,
                                  const BalanceOptions& options, const CostModel& cost,
                                  const Batch& batch);

}  // namespace isochron
