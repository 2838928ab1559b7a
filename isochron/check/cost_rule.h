#pragma once

#include <optional>

#include "isochron/core/json.h"
#include "isochron/core/units.h"

namespace isochron::check {

// The part of a cost model that decides what a sequence costs on one rank.
struct CostRule {
  double quadratic_ns = 0;  // per token squared
  double linear_ns = 0;     // per token
};

// Reads the whole cost model of a result. Rejects an unknown key, a value of another type, and a
// negative coefficient.
[[nodiscard]] CostRule cost_rule_from_json(const Json& cost);

// quadratic*s*s + linear*s + extra, rounded once; exact if both coefficients are integers. Nothing
// if that exceeds 2^62. Needs a length from 1 to 2^31-1 and an extra cost from 0 to 2^62.
[[nodiscard]] std::optional<Nanoseconds> find_cost(const CostRule& rule, Tokens length,
                                                   Nanoseconds extra_cost);

}  // namespace isochron::check
