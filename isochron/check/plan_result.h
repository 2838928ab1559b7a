#pragma once

#include <string_view>

#include "isochron/check/check.h"
#include "isochron/core/batch.h"
#include "isochron/core/json.h"

namespace isochron::check {

// The broken rules of a document with the schema isochron.plan.v1, whose text is `json_text`.
// Throws like find_violation.
[[nodiscard]] Findings find_plan_violations(const Json& document, std::string_view json_text,
                                            const Batch* expected);

}  // namespace isochron::check
