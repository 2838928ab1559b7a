#include "isochron/check/plan_dropped.h"

#include <algorithm>

namespace isochron::check {

namespace {

// The first unit of the input that is dropped.
std::int64_t first_dropped(const PlanView& view) {
  std::int64_t first = view.num_real();
  for (const SequenceId id : view.plan().dropped) first = std::min(first, view.unit_of(id));
  return first;
}

Violation find_suffix_violation(const PlanView& view, std::int64_t first) {
  for (std::size_t slot = 0; slot < view.plan().microbatches.size(); ++slot) {
    for (const ContextGroup& group : view.plan().microbatches[slot]) {
      for (const SequenceId id : group.sequences) {
        if (id.value() >= view.num_real() || view.unit_of(id) < first) continue;
        return fmt::format("dropped is not a suffix: sequence {} behind it runs in {}", id.value(),
                           group_text(slot, group.ranks));
      }
    }
  }
  return std::nullopt;
}

// A plan that drops less is plain to see if a micro-batch has room for the first unit of the
// suffix. Where memory, the order of the input or what the rows divide by decide as well nothing is
// plain.
Violation find_room_violation(const PlanView& view, std::int64_t first) {
  const StepPlan& plan = view.plan();
  const bool is_plain =
      !view.must_divide() && plan.options.balance && plan.options.max_activation_bytes == 0;
  if (!is_plain) return std::nullopt;
  std::vector<SequenceId> unit;
  for (const SequenceId id : plan.dropped) {
    if (view.unit_of(id) == first) unit.push_back(id);
  }
  const auto most = static_cast<std::size_t>(plan.options.max_sequences);
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      if (view.is_oversized(group)) continue;  // it stands alone
      const std::int64_t ranks = group.ranks.size;
      const Tokens tokens =
          view.tokens_per_rank(group.sequences, ranks) + view.tokens_per_rank(unit, ranks);
      const bool is_few = most == 0 || group.sequences.size() + unit.size() <= most;
      if (tokens > plan.topology.capacity || !is_few) continue;
      return fmt::format("{} is dropped, but {} has room for it", view.unit_text(first),
                         group_text(slot, group.ranks));
    }
  }
  return std::nullopt;
}

}  // namespace

Violation find_dropped_violation(const PlanView& view) {
  const StepPlan& plan = view.plan();
  if (plan.dropped.empty()) return std::nullopt;
  if (plan.options.short_ != Short::drop) {
    return fmt::format("dropped has {} sequences, but options.short is {}", plan.dropped.size(),
                       name_of(plan.options.short_));
  }
  if (plan.options.counts != Counts::equal) {
    return fmt::format("dropped has {} sequences, but options.counts is free", plan.dropped.size());
  }
  for (const SequenceId id : plan.dropped) {
    if (id.value() < view.num_real()) continue;
    return fmt::format("dropped has {}, which is a padding row", id.value());
  }
  if (std::ssize(plan.dropped) == view.num_real()) return "dropped names every sequence";
  const std::int64_t first = first_dropped(view);
  if (auto found = find_suffix_violation(view, first)) return found;
  return find_room_violation(view, first);
}

}  // namespace isochron::check
