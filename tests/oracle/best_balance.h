#pragma once

#include <cstdint>
#include <optional>

#include "isochron/balance/balance.h"

namespace isochron::oracle {

// The smallest max_cost of all assignments that `options` allow; nothing if there is none. Looks at
// every assignment: for up to ten sequences (groups, if kept) in a mini-batch.
[[nodiscard]] std::optional<Nanoseconds> best_balance(const Sequences& sequences,
                                                      std::int32_t ranks,
                                                      const BalanceOptions& options = {});

}  // namespace isochron::oracle
