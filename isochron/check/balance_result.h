#pragma once

#include "isochron/check/violation.h"
#include "isochron/core/batch.h"
#include "isochron/core/json.h"

namespace isochron::check {

// The first broken rule of a document with the schema isochron.balance.v1. Throws like
// find_violation.
[[nodiscard]] Violation find_balance_violation(const Json& document, const Batch* expected);

}  // namespace isochron::check
