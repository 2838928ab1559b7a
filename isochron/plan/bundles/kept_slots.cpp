// Bundles in slots for which all ranks wait.
//
// Where bundles stand is the answer of a step search, whose ranks are equally busy, each in its own
// order. Or the ranks are cut into cells for the whole step: wide ones for bundles with long items,
// narrow ones for the others, which then run in lock step. The shortest of what that gives.

#include "isochron/plan/bundles/kept_slots.h"

#include <algorithm>
#include <map>
#include <numeric>
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

// Every bundle on the cell that has the fewest items so far, those of many items first. Nothing if
// a cell cannot hold one.
std::optional<std::vector<DraftGroup>> even_counts(const Problem& problem) {
  const std::int32_t size = problem.sizes().front();
  const PriceId price = problem.cheapest_price(size);
  std::vector<BundleId> order(static_cast<std::size_t>(problem.num_bundles()));
  std::iota(order.begin(), order.end(), 0);
  const auto fits = [&](BundleId bundle) { return problem.fits(size, bundle); };
  if (!std::all_of(order.begin(), order.end(), fits)) return std::nullopt;
  std::stable_sort(order.begin(), order.end(), [&](BundleId a, BundleId b) {
    return std::pair(problem.items_of(a).size(), problem.cost(price, a)) >
           std::pair(problem.items_of(b).size(), problem.cost(price, b));
  });
  struct Dealt {
    std::vector<ItemId> items = {};
    Nanoseconds cost = 0;
  };
  std::vector<Dealt> cells(static_cast<std::size_t>(problem.num_ranks() / size));
  for (const BundleId bundle : order) {
    Dealt& cell = *std::min_element(cells.begin(), cells.end(), [](const Dealt& a, const Dealt& b) {
      return std::pair(a.items.size(), a.cost) < std::pair(b.items.size(), b.cost);
    });
    const auto items = problem.items_of(bundle);
    cell.items.insert(cell.items.end(), items.begin(), items.end());
    cell.cost += problem.cost(price, bundle);
  }
  std::vector<DraftGroup> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const RankRange ranks{.first = static_cast<std::int64_t>(i) * size, .size = size};
    if (problem.price_of(ranks) < 0) return std::nullopt;
    for (auto& items : first_fit(problem, size, cells[i].items)) {
      groups.push_back({.ranks = ranks, .items = std::move(items)});
    }
  }
  return groups;
}

}  // namespace

DraftSlots search_kept_slots(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  const bool is_nested = has_nested_bundles(problem);
  const Draft draft = search_step(problem, bound, is_nested ? work / 8 : work);
  // Those that leave a rank without work come last where that is an error.
  const auto score = [&](const DraftSlots& slots) {
    bool is_short = false;
    if (problem.options().short_ == Short::error) {
      DraftSlots filled = slots;
      equalize(problem, 1, filled);
      is_short = has_placeholder(filled);
    }
    return std::pair(is_short, slots_time(problem, slots));
  };
  DraftSlots best;
  auto best_score = std::pair(true, max_total_cost);
  const auto consider = [&](DraftSlots slots) {
    const auto found = score(slots);
    if (found < best_score) {
      best_score = found;
      best = std::move(slots);
    }
  };
  consider(sorted_slots(problem, draft.groups));
  const auto fewest = static_cast<std::int32_t>(best.size());
  if (is_nested) {
    auto dealt = search_partition(problem, bound, work / 4, BlockPacker::Ranks::keep_groups);
    if (dealt) consider(sorted_slots(problem, std::move(dealt->groups)));
  }
  for (const auto& sizes : cell_sizes(problem)) {
    const BundleTable table(problem, sizes);
    std::vector<BundleCell> last;
    for (std::int32_t level = 0; level < table.num_levels(); ++level) {
      const Nanoseconds limit = best_score.first ? max_total_cost : best_score.second;
      for (auto& cells : cut_into_cells(problem, table, {.narrowest = level, .limit = limit})) {
        if (cells == last) continue;  // no bundle is as narrow as that
        consider(lock_step(problem, cells));
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
  if (best_score.first) {
    if (auto dealt = even_counts(problem)) consider(sorted_slots(problem, *std::move(dealt)));
  }
  return best;
}

}  // namespace isochron
