#include "isochron/engine/train/context_reach.h"

#include <algorithm>

#include "isochron/core/require.h"
#include "isochron/engine/train/planning.h"
#include "isochron/plan/problem.h"

namespace isochron {

ContextReach context_reach(const Recipe& recipe, std::int32_t ranks, Tokens capacity) {
  const ExecutionOptions& engine = recipe.engine;
  require(ranks % engine.context_parallel_size == 0, "recipe",
          "engine.context_parallel_size is {}, must divide the {} ranks",
          engine.context_parallel_size, ranks);
  const Topology topology = {.ranks = ranks, .capacity = capacity};
  const CostModel links = engine.cost ? named_cost(*engine.cost) : CostModel{};
  const Problem problem({}, topology, links,
                        resolved(plan_options(recipe, topology.ranks), topology));
  require(!problem.sizes().empty(), "recipe",
          "engine.cost is {}, must have a link for groups of {} ranks", engine.cost.value_or(""),
          engine.context_parallel_size);
  ContextReach reach;
  for (const std::int32_t size : problem.sizes()) {
    // Each of several ranks holds two chunks of equal size.
    const Tokens longest = size == 1 ? capacity : capacity / 2 * 2 * size;
    reach.largest_group = size;
    reach.longest = std::max(reach.longest, longest);
  }
  return reach;
}

void require_executable_exchanges(const Recipe& recipe, const ModelShape& model) {
  const bool has_groups =
      recipe.engine.dynamic_context_parallel || recipe.engine.context_parallel_size > 1;
  if (!recipe.engine.cost || !has_groups) return;
  for (const ContextCost& context : named_cost(*recipe.engine.cost).context) {
    if (context.kind != ContextKind::all_to_all) continue;
    require(context.divides > 0 && model.kv_heads % context.divides == 0, "recipe",
            "engine.cost is {}, whose all_to_all divides {}, must divide the {} heads of keys and "
            "values of the model",
            *recipe.engine.cost, context.divides, model.kv_heads);
  }
}

}  // namespace isochron
