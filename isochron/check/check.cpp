#include "isochron/check/check.h"

#include "isochron/check/balance_result.h"
#include "isochron/check/pack_result.h"
#include "isochron/check/plan_result.h"
#include "isochron/core/json.h"

namespace isochron {

namespace {

Findings only_finding(check::Violation violation) {
  if (!violation) return {};
  return {.violations = {*std::move(violation)}};
}

}  // namespace

std::optional<std::string> find_violation(std::string_view result_json, const Batch* expected) {
  const Findings findings = find_violations(result_json, expected);
  if (findings.violations.empty()) return std::nullopt;
  return findings.violations.front();
}

Findings find_violations(std::string_view result_json, const Batch* expected) {
  constexpr std::string_view where = "check";
  const Json document = parse_json(result_json, where);
  require_object(document, where, "the result");
  const std::string schema = text_of(member(document, where, "schema"), where, "schema");
  if (schema == "isochron.balance.v1") {
    return only_finding(check::find_balance_violation(document, expected));
  }
  if (schema == "isochron.pack.v1") {
    return only_finding(check::find_pack_violation(document, expected));
  }
  if (schema == "isochron.plan.v1") {
    return check::find_plan_violations(document, result_json, expected);
  }
  reject(where,
         "schema is {}, must be one of isochron.balance.v1, isochron.pack.v1, isochron.plan.v1",
         shown(schema));
}

}  // namespace isochron
