#include "isochron/balance/balance_json.h"

#include "isochron/core/batch_json.h"
#include "isochron/core/json.h"
#include "isochron/cost/cost_json.h"

namespace isochron {

std::string to_json(const Balance& result, std::int32_t ranks, const BalanceOptions& options,
                    const CostModel& cost, const Batch& batch) {
  Json json;
  json["schema"] = "isochron.balance.v1";
  json["status"] = name_of(result.status);
  json["reason"] = result.reason;
  json["ranks"] = ranks;
  json["max_cost"] = result.max_cost;
  json["mean_cost"] = result.mean_cost;
  json["lower_bound"] = result.lower_bound;
  json["sequences_of_rank"] = result.sequences_of_rank;
  json["options"] = options_to_json(options);
  json["cost"] = cost_to_json(cost);
  add_batch(batch, json);
  return json.dump() + "\n";
}

}  // namespace isochron
