#include "isochron/core/batch_json.h"

namespace isochron {

void add_batch(const Batch& batch, Json& json) {
  json["lengths"] = batch.lengths;
  if (!batch.groups.empty()) {
    Json& names = json["group"] = Json::array();
    for (const PromptGroupId group : batch.groups) {
      names.push_back(batch.group_names[group.index()]);
    }
  }
  if (!batch.extra_cost_ns.empty()) json["extra_cost_ns"] = batch.extra_cost_ns;
}

}  // namespace isochron
