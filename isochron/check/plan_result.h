#pragma once

#include <string_view>

#include "isochron/check/violation.h"
#include "isochron/core/batch.h"
#include "isochron/core/json.h"

namespace isochron::check {

// The first broken rule of a document with the schema isochron.plan.v1, whose text is `json_text`.
// Throws like find_violation.
[[nodiscard]] Violation find_plan_violation(const Json& document, std::string_view json_text,
                                            const Batch* expected);

}  // namespace isochron::check
