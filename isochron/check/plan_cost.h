#pragma once

#include <optional>

#include "isochron/check/plan_view.h"

namespace isochron::check {

// What a sequence costs on one rank alone.
[[nodiscard]] Nanoseconds cost_on_one_rank(const PlanView& view, SequenceId id);

// What a micro-batch costs each rank of a group, forward and backward at full speed, if keys and
// values are exchanged that way; none if the group may not use it. One rank needs no exchange.
[[nodiscard]] std::optional<Nanoseconds> find_cost_with(const PlanView& view,
                                                        const ContextGroup& group,
                                                        const ContextCost& exchange);

// The least of that over the exchanges that the cost model offers, or over those of one kind; none
// if there is no way to run the group.
[[nodiscard]] std::optional<Nanoseconds> find_least_cost(const PlanView& view,
                                                         const ContextGroup& group,
                                                         std::optional<ContextKind> kind = {});

// The same in the pass that the plan is for, at the pace of the slowest rank. Needs a group that
// can run.
[[nodiscard]] Nanoseconds cost_in_pass(const PlanView& view, const ContextGroup& group);

// Whether a group of these ranks can run at all.
[[nodiscard]] bool is_runnable(const CostModel& cost, RankRange ranks);

}  // namespace isochron::check
