#include "isochron/plan/slots/equal_counts.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/default_effort.h"
#include "isochron/plan/related_problems.h"
#include "isochron/plan/slots/slot_search.h"
#include "isochron/plan/slots/widen_groups.h"

namespace isochron {

DraftSlots EqualCounts::answer(DraftSlots slots) {
  const Nanoseconds before = slots_time(problem_, slots);
  DraftSlots wide = slots;
  equalize(problem_, 1, slots);
  Nanoseconds after = slots_time(problem_, slots);
  // Ranks that idle may share what stands beside them instead.
  if (after > before && problem_.options().keep_groups != KeepGroups::rank &&
      widen_groups(problem_, wide)) {
    equalize(problem_, 1, wide);
    const Nanoseconds widened = slots_time(problem_, wide);
    if (widened < after) slots = std::move(wide);
    after = std::min(after, widened);
  }
  if (after <= before + before / 100 || problem_.options().keep_groups != KeepGroups::none) {
    return slots;
  }
  // Ranks that idle got what does not suit them: micro-batches of one sequence leave them alone.
  return !apart(before, after).empty() && slots_time(problem_, apart_) < after ? apart_ : slots;
}

// Slots of one sequence a micro-batch, where they may end before `time`, which falls, and hardly
// before `least`; empty if they are not searched for.
const DraftSlots& EqualCounts::apart(Nanoseconds least, Nanoseconds time) {
  if (is_searched_ || problem_.options().max_sequences == 1) return apart_;
  is_searched_ = true;
  const auto single = with_single_sequences(problem_);
  if (equal_count_bound(*single) >= time) return apart_;
  const auto saved = static_cast<double>(time - least);
  if (!problem_.purse()->pays(time_of_equal_counts(*single), saved)) return apart_;
  apart_ = search_slots(*single, bound_, effort_).slots;
  equalize(problem_, 1, apart_);
  return apart_;
}

}  // namespace isochron
