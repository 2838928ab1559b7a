// Bundles in slots for which all ranks wait.
//
// Where bundles stand is the answer of a step search, whose ranks are equally busy, each in its own
// order. Or the ranks are cut into cells for the whole step: wide ones for bundles with long items,
// narrow ones for the others, which then run in lock step. The shortest of what that gives.

#include "isochron/plan/bundles/kept_slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "isochron/plan/bundles/bundle_partition.h"
#include "isochron/plan/bundles/cell_partition.h"
#include "isochron/plan/bundles/lock_step.h"
#include "isochron/plan/steps/step_search.h"

namespace isochron {

namespace {

// Every rank runs its longest micro-batches first, so that those of a slot take equally long.
DraftSlots sorted_slots(const Problem& problem, std::vector<DraftGroup> groups) {
  std::vector<std::pair<Nanoseconds, std::size_t>> order;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    order.emplace_back(-group_time(problem, groups[i]), i);
  }
  std::sort(order.begin(), order.end());
  Draft sorted;
  for (const auto& [time, i] : order) sorted.groups.push_back(std::move(groups[i]));
  return slots_of(problem, sorted);
}

// A group for each cell, with all that it runs.
std::vector<DraftGroup> items_of(const Problem& problem, const std::vector<BundleCell>& from) {
  std::vector<DraftGroup> cells;
  for (const BundleCell& cell : from) {
    cells.push_back({.ranks = cell.ranks});
    for (const BundleId bundle : cell.bundles) {
      const auto items = problem.items_of(bundle);
      cells.back().items.insert(cells.back().items.end(), items.begin(), items.end());
    }
  }
  return cells;
}

}  // namespace

DraftSlots search_kept_slots(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  const bool is_nested = has_nested_bundles(problem);
  const Draft draft = search_step(problem, bound, is_nested ? work / 8 : work);
  DraftSlots best;
  Nanoseconds best_time = std::numeric_limits<Nanoseconds>::max();
  const auto consider = [&](DraftSlots slots) {
    const Nanoseconds time = slots_time(problem, slots);
    if (time < best_time) {
      best_time = time;
      best = std::move(slots);
    }
  };
  consider(sorted_slots(problem, draft.groups));
  const auto fewest = static_cast<std::int32_t>(best.size());
  if (is_nested) {
    auto dealt = search_partition(problem, bound, work / 4, BlockPacker::Ranks::keep_groups);
    if (dealt) consider(sorted_slots(problem, std::move(dealt->groups)));
    const BundleTable table(problem);
    std::vector<BundleCell> last;
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      for (auto& cells : cut_into_cells(table, problem.num_ranks(), level, best_time)) {
        if (cells == last) continue;  // no bundle is as narrow as that
        consider(lock_step(problem, items_of(problem, cells)));
        last = std::move(cells);
      }
    }
  }
  // The same ranks for everything, in micro-batches of even cost on every cell.
  const std::int32_t size = problem.sizes().front();
  std::vector<DraftGroup> wide;
  std::map<std::int64_t, std::vector<ItemId>> items_of_cell;  // by the first rank
  std::map<std::int64_t, std::int32_t> num_wide;
  for (const DraftGroup& group : draft.groups) {
    if (group.ranks.size == size) {
      auto& items = items_of_cell[group.ranks.first];
      items.insert(items.end(), group.items.begin(), group.items.end());
    } else {
      wide.push_back(group);
      for (std::int64_t r = 0; r < group.ranks.size; ++r) ++num_wide[group.ranks.first + r];
    }
  }
  for (std::int32_t count = fewest; count < fewest + 3; ++count) {
    std::vector<DraftGroup> groups = wide;
    bool is_packed = true;
    for (const auto& [first, items] : items_of_cell) {
      const auto even = even_groups(problem, {.first = first, .size = size}, items,
                                    std::max(1, count - num_wide[first]));
      if (even) groups.insert(groups.end(), even->begin(), even->end());
      is_packed = is_packed && even.has_value();
    }
    if (!is_packed) continue;
    consider(sorted_slots(problem, std::move(groups)));
  }
  return best;
}

}  // namespace isochron
