#include "isochron/check/plan_view.h"

#include <cmath>

#include "isochron/check/result_input.h"

namespace isochron::check {

PlanView::PlanView(const StepPlan& plan) : plan_(plan), mode_(context_mode(plan.options.context)) {
  for (const SequenceId id : plan.oversized) {
    if (id.index() >= is_oversized_.size()) is_oversized_.resize(id.index() + 1);
    is_oversized_[id.index()] = true;
  }
}

bool PlanView::is_oversized(SequenceId id) const {
  return id.index() < is_oversized_.size() && is_oversized_[id.index()];
}

Tokens PlanView::length_of(SequenceId id) const {
  return id.value() < num_real() ? plan_.batch.lengths[id.index()] : padding_row_length;
}

Nanoseconds PlanView::extra_cost_of(SequenceId id) const {
  const std::vector<Nanoseconds>& extra = plan_.batch.extra_cost_ns;
  return id.index() < extra.size() ? extra[id.index()] : 0;
}

std::int64_t PlanView::unit_of(SequenceId id) const {
  if (options().keep_groups == KeepGroups::none) return id.value();
  const Batch& batch = plan_.batch;
  if (id.value() < num_real()) return batch.groups[id.index()].value();
  return static_cast<std::int64_t>(batch.group_names.size()) + id.value() - num_real();
}

std::string PlanView::unit_text(std::int64_t unit) const {
  if (options().keep_groups == KeepGroups::none) return fmt::format("sequence {}", unit);
  const std::vector<std::string>& names = plan_.batch.group_names;
  const auto num_groups = static_cast<std::int64_t>(names.size());
  if (unit >= num_groups) return fmt::format("sequence {}", unit - num_groups + num_real());
  return fmt::format("group {}", shown(names[static_cast<std::size_t>(unit)]));
}

Tokens PlanView::tokens_per_rank(Tokens length, std::int64_t ranks) const {
  const std::int64_t tensor_parallel = options().tensor_parallel;
  if (ranks == 1) return rounded_up(length, tensor_parallel) * tensor_parallel;
  const std::int64_t num_chunks = 2 * ranks;
  return rounded_up(length, num_chunks * tensor_parallel) * 2 * tensor_parallel;
}

Tokens PlanView::tokens_per_rank(std::span<const SequenceId> ids, std::int64_t ranks) const {
  Tokens sum = 0;
  for (const SequenceId id : ids) sum += tokens_per_rank(length_of(id), ranks);
  return sum;
}

std::string group_text(std::size_t slot, RankRange ranks) {
  if (ranks.size == 1) return fmt::format("slot {}, rank {}", slot, ranks.first);
  return fmt::format("slot {}, ranks {} to {}", slot, ranks.first, ranks.first + ranks.size - 1);
}

std::int64_t added(std::int64_t a, std::int64_t b) {
  require(a <= max_total_cost - b, where, "the plan adds up to more than 2^62");
  return a + b;
}

std::int64_t rounded(double value, std::string_view name) {
  require(value <= static_cast<double>(max_total_cost), where, "{} is above 2^62", name);
  return std::llround(value);
}

}  // namespace isochron::check
