// What a micro-batch costs (DESIGN 5.2), worked out without isochron/cost: a mistake that the
// checker shared with the planner it could not find. Every term is rounded once, by itself.

#include "isochron/check/plan_cost.h"

#include <algorithm>

#include "isochron/check/cost_rule.h"
#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

// None: the group may not use this exchange.
std::optional<ContextLink> find_group_link(const ContextCost& exchange, RankRange ranks) {
  if (exchange.divides != 0 && exchange.divides % ranks.size != 0) return std::nullopt;
  if (exchange.kind == ContextKind::none && exchange.links.empty()) return ContextLink{};
  const std::int64_t last = ranks.first + ranks.size - 1;
  const auto link = std::find_if(exchange.links.begin(), exchange.links.end(), [&](const auto& l) {
    return ranks.first / l.max_ranks == last / l.max_ranks;
  });
  if (link == exchange.links.end()) return std::nullopt;
  return *link;
}

double bytes_moved(const ContextCost& exchange, double s, double c) {
  if (exchange.kind == ContextKind::none) return 0;
  if (exchange.kind == ContextKind::all_gather_kv) {
    return exchange.bytes_per_token * s * (c - 1) / c;
  }
  return exchange.bytes_per_token * s * (c - 1) / (c * c);
}

Nanoseconds cost_on_several(const PlanView& view, SequenceId id, std::int64_t ranks,
                            const ContextCost& exchange, const ContextLink& link) {
  const CostModel& cost = view.plan().cost;
  const auto s = static_cast<double>(view.length_of(id));
  const auto c = static_cast<double>(ranks);
  const double work =
      cost.quadratic_ns * s * s + cost.linear_ns * s + static_cast<double>(view.extra_cost_of(id));
  const double bytes = bytes_moved(exchange, s, c);
  const double traffic = bytes == 0 ? 0 : (1 - exchange.overlap) * bytes / link.gb_per_s;
  return rounded(work / c + traffic, fmt::format("the cost of sequence {}", id.value()));
}

Nanoseconds fixed_cost(const CostModel& cost) {
  return rounded(cost.microbatch_ns, "cost.microbatch_ns");
}

}  // namespace

Nanoseconds cost_on_one_rank(const PlanView& view, SequenceId id) {
  const CostModel& cost = view.plan().cost;
  const auto found = find_cost({.quadratic_ns = cost.quadratic_ns, .linear_ns = cost.linear_ns},
                               view.length_of(id), view.extra_cost_of(id));
  require(found.has_value(), where, "the cost of sequence {} is above 2^62", id.value());
  return *found;
}

std::optional<Nanoseconds> find_cost_with(const PlanView& view, const ContextGroup& group,
                                          const ContextCost& exchange) {
  Nanoseconds sum = fixed_cost(view.plan().cost);
  if (group.ranks.size == 1) {
    for (const SequenceId id : group.sequences) sum = added(sum, cost_on_one_rank(view, id));
    return sum;
  }
  const auto link = find_group_link(exchange, group.ranks);
  if (!link) return std::nullopt;
  sum = added(sum, rounded(link->latency_us * 1000, "a latency"));
  for (const SequenceId id : group.sequences) {
    sum = added(sum, cost_on_several(view, id, group.ranks.size, exchange, *link));
  }
  return sum;
}

std::optional<Nanoseconds> find_least_cost(const PlanView& view, const ContextGroup& group,
                                           std::optional<ContextKind> kind) {
  if (group.ranks.size == 1) return find_cost_with(view, group, ContextCost{});
  std::optional<Nanoseconds> least;
  for (const ContextCost& exchange : view.plan().cost.context) {
    if (kind && exchange.kind != *kind) continue;
    const auto cost = find_cost_with(view, group, exchange);
    if (cost && (!least || *cost < *least)) least = cost;
  }
  return least;
}

Nanoseconds cost_in_pass(const PlanView& view, const ContextGroup& group) {
  Nanoseconds cost = find_least_cost(view, group, group.exchange).value();
  const std::vector<double>& speeds = view.plan().topology.rank_speed;
  if (!speeds.empty()) {
    const auto first = speeds.begin() + static_cast<std::ptrdiff_t>(group.ranks.first);
    const double slowest = *std::min_element(first, first + group.ranks.size);
    // At full speed a cost stays what it is, also above 2^53, where a double would round it.
    if (slowest != 1) cost = rounded(static_cast<double>(cost) / slowest, "the cost of a group");
  }
  if (view.options().pass == Pass::train) return cost;
  return rounded(view.plan().cost.forward_share * static_cast<double>(cost), "a forward pass");
}

bool is_runnable(const CostModel& cost, RankRange ranks) {
  if (ranks.size == 1) return true;
  return std::any_of(cost.context.begin(), cost.context.end(), [&](const ContextCost& exchange) {
    return find_group_link(exchange, ranks).has_value();
  });
}

}  // namespace isochron::check
