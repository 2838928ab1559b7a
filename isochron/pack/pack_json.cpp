#include "isochron/pack/pack_json.h"

#include <algorithm>

#include "isochron/core/batch_json.h"
#include "isochron/core/json.h"
#include "isochron/cost/cost_json.h"

namespace isochron {

std::string to_json(const Packing& result, const PackOptions& options, const CostModel& cost,
                    const Batch& batch) {
  Tokens max_tokens = 0;
  for (const auto& microbatch : result.microbatches) {
    Tokens tokens = 0;
    for (const SequenceId id : microbatch) tokens += batch.lengths[id.index()];
    max_tokens = std::max(max_tokens, tokens);
  }
  Json json;
  json["schema"] = "isochron.pack.v1";
  json["status"] = name_of(result.status);
  json["reason"] = result.reason;
  json["count"] = result.microbatches.size();
  json["lower_bound"] = result.lower_bound;
  json["max_tokens"] = max_tokens;
  json["max_cost"] = result.max_cost;
  json["max_cost_bound"] = result.max_cost_bound;
  json["microbatches"] = result.microbatches;
  json["oversized"] = result.oversized;
  json["dropped"] = result.dropped;
  json["options"] = options_to_json(options);
  json["cost"] = cost_to_json(cost);
  add_batch(batch, json);
  return json.dump() + "\n";
}

}  // namespace isochron
