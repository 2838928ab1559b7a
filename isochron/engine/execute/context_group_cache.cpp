// Least recently used, for ranks that share what they cache: a group is open on all its members or
// on none, while the limit is that of a rank.
//
// Groups that the plan does not need are visited once, oldest first, and closed if a member has too
// many. Closing only lowers counts, so a group that was passed over never has to be closed after
// all, and each rank loses its oldest groups first, beside those that another member gave up.

#include "isochron/engine/execute/context_group_cache.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "isochron/core/require.h"

namespace isochron {

ContextGroupCache::ContextGroupCache(std::int32_t max_open) : max_open_(max_open) {
  require(max_open >= 1, "context groups", "max_open is {}, must be at least 1", max_open);
}

std::vector<GroupChange> ContextGroupCache::advance(const StepPlan& plan) {
  ++step_;
  std::vector<GroupChange> opened;
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      if (group.ranks.size == 1) continue;
      const auto [entry, is_missing] =
          last_step_.try_emplace({group.ranks.first, group.ranks.size}, step_);
      entry->second = step_;
      if (is_missing) opened.push_back({GroupChange::Kind::open, group.ranks});
    }
  }

  std::vector<std::int32_t> num_open(static_cast<std::size_t>(plan.topology.ranks));
  const auto members = [&](const Range& range) {
    return std::span(num_open).subspan(static_cast<std::size_t>(range.first),
                                       static_cast<std::size_t>(range.second));
  };
  std::vector<std::tuple<std::int64_t, Range>> unneeded;
  for (const auto& [range, last_step] : last_step_) {
    for (std::int32_t& count : members(range)) ++count;
    if (last_step < step_) unneeded.emplace_back(last_step, range);
  }
  std::sort(unneeded.begin(), unneeded.end());

  std::vector<GroupChange> changes;
  for (const auto& [last_step, range] : unneeded) {
    if (*std::ranges::max_element(members(range)) <= max_open_) continue;
    for (std::int32_t& count : members(range)) --count;
    last_step_.erase(range);
    changes.push_back({GroupChange::Kind::close, {range.first, range.second}});
  }
  changes.insert(changes.end(), opened.begin(), opened.end());
  return changes;
}

}  // namespace isochron
