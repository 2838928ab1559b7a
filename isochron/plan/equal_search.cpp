// Equal counts out of free ones: the search is told how many micro-batches every rank will pay for,
// and what falls short of that number is split.

#include "isochron/plan/equal_search.h"

#include <algorithm>
#include <limits>

#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/steps/step_search.h"

namespace isochron {

DraftSlots search_equal_step(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  DraftSlots best;
  Nanoseconds best_time = std::numeric_limits<Nanoseconds>::max();
  const auto consider = [&](const Draft& draft) {
    DraftSlots slots = slots_of(problem, draft);
    const auto count = static_cast<std::int32_t>(slots.size());
    equalize(problem, 1, slots);
    const Nanoseconds time = step_time(problem, slots);
    if (time < best_time) {
      best_time = time;
      best = std::move(slots);
    }
    return count;
  };
  if (has_nested_bundles(problem)) {
    const auto dealt = search_partition(problem, bound, work / 4, BlockPacker::Ranks::keep_groups);
    if (dealt) consider(*dealt);
  }
  const std::int32_t most = consider(search_step(problem, bound, work));
  // Fewer micro-batches cost less and leave less room to balance.
  for (std::int32_t count = most; count >= std::max(1, most - 2); --count) {
    consider(search_step(problem, bound, work / 4, count));
  }
  return best;
}

}  // namespace isochron
