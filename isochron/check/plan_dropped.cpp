#include "isochron/check/plan_dropped.h"

#include <algorithm>

namespace isochron::check {

namespace {

// Where what is dropped begins, of the input and of the padding rows behind it: each is a suffix of
// its own.
struct DroppedSuffix {
  std::int64_t first_unit = 0;     // of the input; past the last if none is dropped
  std::int64_t first_padding = 0;  // id of a row, likewise
  std::int64_t num_real = 0;       // sequences of the input
};

DroppedSuffix suffix_of(const PlanView& view) {
  DroppedSuffix suffix = {.first_unit = view.num_sequences(),
                          .first_padding = view.num_sequences()};
  for (const SequenceId id : view.plan().dropped) {
    if (id.value() >= view.num_real()) {
      suffix.first_padding = std::min<std::int64_t>(suffix.first_padding, id.value());
    } else {
      suffix.first_unit = std::min(suffix.first_unit, view.unit_of(id));
      ++suffix.num_real;
    }
  }
  return suffix;
}

Violation find_suffix_violation(const PlanView& view, const DroppedSuffix& suffix) {
  for (std::size_t slot = 0; slot < view.plan().microbatches.size(); ++slot) {
    for (const ContextGroup& group : view.plan().microbatches[slot]) {
      for (const SequenceId id : group.sequences) {
        const bool is_real = id.value() < view.num_real();
        const bool is_before =
            is_real ? view.unit_of(id) < suffix.first_unit : id.value() < suffix.first_padding;
        if (is_before) continue;
        return fmt::format("dropped is not a suffix: sequence {} behind it runs in {}", id.value(),
                           group_text(slot, group.ranks));
      }
    }
  }
  return std::nullopt;
}

// A plan that drops less is plain to see if a micro-batch has room for the first unit of the
// suffix. Where memory, the order of the input or added rows decide as well nothing is plain.
Violation find_room_violation(const PlanView& view, const DroppedSuffix& suffix) {
  const StepPlan& plan = view.plan();
  const bool is_plain = suffix.num_real > 0 && plan.padding_rows == 0 && plan.options.balance &&
                        plan.options.max_activation_bytes == 0;
  if (!is_plain) return std::nullopt;
  std::vector<SequenceId> unit;
  for (const SequenceId id : plan.dropped) {
    if (view.unit_of(id) == suffix.first_unit) unit.push_back(id);
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
      return fmt::format("{} is dropped, but {} has room for it", view.unit_text(suffix.first_unit),
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
  const DroppedSuffix suffix = suffix_of(view);
  if (suffix.num_real == view.num_real()) return "dropped names every sequence";
  if (auto found = find_suffix_violation(view, suffix)) return found;
  return find_room_violation(view, suffix);
}

}  // namespace isochron::check
