#include <algorithm>
#include <cmath>

#include "isochron/core/int128.h"
#include "isochron/core/require.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

constexpr std::string_view where = "simulate";

Nanoseconds required_total(Int128 total, const ContextGroup& group) {
  require(total <= max_total_cost, where, "a micro-batch of rank {} costs more than 2^62",
          group.ranks.first);
  return static_cast<Nanoseconds>(total);
}

// None if the group may not use the exchange.
std::optional<Nanoseconds> find_cost(const StepPlan& plan, const ContextGroup& group,
                                     const ContextCost& context) {
  const auto link = find_link(context, group.ranks);
  if (!link) return std::nullopt;
  const Batch& batch = plan.batch;
  Int128 total = microbatch_cost(plan.cost);
  if (group.ranks.size > 1) total += link_latency(*link);
  for (const SequenceId id : group.sequences) {
    const bool is_padding = id.index() >= batch.lengths.size();
    const Tokens length = is_padding ? padding_row_length : batch.lengths[id.index()];
    const Nanoseconds extra =
        is_padding || batch.extra_cost_ns.empty() ? 0 : batch.extra_cost_ns[id.index()];
    total += group.ranks.size == 1
                 ? sequence_cost(plan.cost, length, extra)
                 : sequence_cost_over(plan.cost, context, *link, group.ranks.size, length, extra);
  }
  return required_total(total, group);
}

// By the exchange that the group names, or else the cheapest that it may use.
Nanoseconds cost_of(const StepPlan& plan, const ContextGroup& group) {
  if (group.ranks.size == 1) return *find_cost(plan, group, ContextCost{});
  std::optional<Nanoseconds> cheapest;
  for (const ContextCost& context : plan.cost.context) {
    if (group.exchange && *group.exchange != context.kind) continue;
    const auto cost = find_cost(plan, group, context);
    if (cost && (!cheapest || *cost < *cheapest)) cheapest = cost;
  }
  require(cheapest.has_value(), where, "the cost model has no exchange for ranks {} to {}",
          group.ranks.first, group.ranks.first + group.ranks.size - 1);
  return *cheapest;
}

double slowest_speed(const Topology& topology, RankRange ranks) {
  if (topology.rank_speed.empty()) return 1;
  const auto first = topology.rank_speed.begin() + ranks.first;
  return *std::min_element(first, first + ranks.size);
}

}  // namespace

Nanoseconds group_cost(const StepPlan& plan, const ContextGroup& group) {
  Nanoseconds cost = cost_of(plan, group);
  const double speed = slowest_speed(plan.topology, group.ranks);
  if (speed != 1) {  // a cost above 2^53 is not a double
    const double slowed = static_cast<double>(cost) / speed;
    require(slowed <= static_cast<double>(max_total_cost), where,
            "a micro-batch of rank {} costs more than 2^62 at a speed of {}", group.ranks.first,
            speed);
    cost = std::llround(slowed);
  }
  return plan.options.pass == Pass::train ? cost
                                          : split_cost(cost, plan.cost.forward_share).forward;
}

}  // namespace isochron
