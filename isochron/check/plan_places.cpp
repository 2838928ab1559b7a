#include "isochron/check/plan_places.h"

#include <algorithm>

#include "isochron/check/result_input.h"

namespace isochron::check {

namespace {

std::vector<std::int64_t> numbers_of(const std::vector<SequenceId>& ids) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(ids.size());
  for (const SequenceId id : ids) numbers.push_back(id.value());
  return numbers;
}

Violation find_one_slot_violation(const PlanView& view, std::size_t slot) {
  const Slot& groups = view.plan().microbatches[slot];
  if (groups.empty()) return fmt::format("slot {} is empty", slot);
  const bool is_equal = view.options().counts == Counts::equal;
  std::int64_t next_rank = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const RankRange ranks = groups[i].ranks;
    if (i > 0 && ranks.first < next_rank) {
      return fmt::format("{} stands behind rank {}, groups of a slot ascend and share no rank",
                         group_text(slot, ranks), next_rank - 1);
    }
    if (is_equal && ranks.first > next_rank) break;
    next_rank = ranks.first + ranks.size;
  }
  return broken_unless(!is_equal || next_rank == view.num_ranks(),
                       "rank {} is in no group of slot {}, but options.counts is equal", next_rank,
                       slot);
}

}  // namespace

Violation find_padding_violation(const PlanView& view) {
  const std::int64_t multiple = view.options().pad_multiple;
  std::int64_t num_kept = view.num_real();
  if (view.options().short_ == Short::drop) {
    for (const SequenceId id : view.plan().dropped)
      num_kept -= id.value() < view.num_real() ? 1 : 0;
    num_kept = std::max<std::int64_t>(0, num_kept);
  }
  const std::int64_t num_missing = rounded_up(num_kept, multiple) * multiple - num_kept;
  if (view.options().pad == Pad::error && num_missing > 0) {
    return fmt::format("{} sequences are not a multiple of {}, but options.pad is error", num_kept,
                       multiple);
  }
  const std::int64_t wanted = view.options().pad == Pad::rows ? num_missing : 0;
  return broken_unless(view.plan().padding_rows == wanted,
                       "padding_rows is {}, must be {} with {} sequences and a multiple of {}",
                       view.plan().padding_rows, wanted, num_kept, multiple);
}

Violation find_slot_violation(const PlanView& view) {
  if (view.num_slots() == 0) {
    return fmt::format("status is {}, so microbatches must not be empty",
                       name_of(view.plan().status));
  }
  for (std::size_t slot = 0; slot < view.plan().microbatches.size(); ++slot) {
    if (auto found = find_one_slot_violation(view, slot)) return found;
  }
  const std::int32_t group = view.plan().topology.pipeline.group;
  return broken_unless(view.num_slots() % group == 0,
                       "there are {} slots, must be a multiple of pipeline.group {}",
                       view.num_slots(), group);
}

Violation find_place_violation(const PlanView& view) {
  const StepPlan& plan = view.plan();
  auto num_placed = static_cast<std::int64_t>(plan.dropped.size());
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      num_placed += static_cast<std::int64_t>(group.sequences.size());
    }
  }
  // Before any memory is taken for them: a short document may speak of 2^31 padding rows.
  if (num_placed < view.num_sequences()) {
    return fmt::format(
        "{} sequences stand in groups or are dropped, there are {} and {} padding "
        "rows",
        num_placed, view.num_real(), plan.padding_rows);
  }
  Places places(static_cast<std::size_t>(view.num_sequences()));
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      const std::string path = group_text(slot, group.ranks);
      if (!std::is_sorted(group.sequences.begin(), group.sequences.end())) {
        return fmt::format("{}: sequences are not ascending", path);
      }
      if (auto found = places.place(numbers_of(group.sequences), path)) return found;
    }
  }
  if (!std::is_sorted(plan.dropped.begin(), plan.dropped.end())) return "dropped is not ascending";
  return places.place(numbers_of(plan.dropped), "dropped");
}

}  // namespace isochron::check
