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

class KeptSlots {
 public:
  KeptSlots(const Problem& problem, Nanoseconds bound) : problem_(problem), bound_(bound) {}

  DraftSlots run(std::int64_t work) {
    const bool is_nested = has_nested_bundles(problem_);
    const Draft draft = search_step(problem_, bound_, is_nested ? work / 8 : work);
    consider(sorted_slots(problem_, draft.groups));
    const auto fewest = static_cast<std::int32_t>(best_.size());
    // Ranks that are even over the whole step may wait in each of several slots: a few trials tell.
    const std::int64_t all_trials = is_nested ? work / 4 : 0;
    const std::int64_t few_trials = fewest > 1 ? all_trials / 8 : all_trials;
    const Score dealt = deal_out(few_trials);
    cut_ranks();
    even_out(draft, fewest);
    const Nanoseconds near = least_.second + least_.second / 100;
    if (few_trials < all_trials && dealt <= Score(least_.first, near)) deal_out(all_trials);
    if (least_.first) {
      if (auto even = even_counts(problem_)) consider(sorted_slots(problem_, *std::move(even)));
    }
    return std::move(best_);
  }

 private:
  // Those that leave a rank without work come last where that is an error.
  using Score = std::pair<bool, Nanoseconds>;
  static constexpr Score worst = {true, max_total_cost};

  Score consider(DraftSlots slots) {
    bool is_short = false;
    if (problem_.options().short_ == Short::error) {
      DraftSlots filled = slots;
      equalize(problem_, 1, filled);
      is_short = has_placeholder(filled);
    }
    const Score found(is_short, slots_time(problem_, slots));
    if (found < least_) {
      least_ = found;
      best_ = std::move(slots);
    }
    return found;
  }

  // Blocks of a few ranks, as even as so many trials make them.
  Score deal_out(std::int64_t num_trials) {
    if (num_trials == 0 || least_ <= Score(false, bound_)) return worst;
    auto dealt = search_partition(problem_, bound_, num_trials, BlockPacker::Ranks::keep_groups);
    return dealt ? consider(sorted_slots(problem_, std::move(dealt->groups))) : worst;
  }

  void cut_ranks() {
    for (const auto& sizes : cell_sizes(problem_)) {
      const BundleTable table(problem_, sizes);
      std::vector<BundleCell> last;
      for (std::int32_t level = 0; level < table.num_levels(); ++level) {
        const Nanoseconds limit = least_.first ? max_total_cost : least_.second;
        for (auto& cells : cut_into_cells(problem_, table, {.narrowest = level, .limit = limit})) {
          if (cells == last) continue;  // no bundle is as narrow as that
          consider(lock_step(problem_, cells));
          last = std::move(cells);
        }
      }
    }
  }

  // The same ranks for everything, in micro-batches of even cost on every cell.
  void even_out(const Draft& draft, std::int32_t fewest) {
    const std::int32_t size = problem_.sizes().front();
    std::vector<DraftGroup> wide;
    std::map<std::int64_t, std::vector<ItemId>> items_of_cell;  // by the first rank
    std::map<std::int64_t, std::int32_t> num_wide;
    std::map<std::int64_t, Nanoseconds> work_of_cell;
    Nanoseconds most_work = 0;
    for (const DraftGroup& group : draft.groups) {
      if (group.ranks.size == size) {
        auto& items = items_of_cell[group.ranks.first];
        items.insert(items.end(), group.items.begin(), group.items.end());
        Nanoseconds& work = work_of_cell[group.ranks.first];
        const PriceId price = problem_.price_of(group.ranks);
        for (const ItemId item : group.items) work += problem_.item_cost(price, item);
        most_work = std::max(most_work, work);
      } else {
        wide.push_back(group);
        for (std::int64_t r = 0; r < group.ranks.size; ++r) ++num_wide[group.ranks.first + r];
      }
    }
    const Nanoseconds fixed = problem_.price(problem_.cheapest_price(size)).fixed;
    for (std::int32_t count = fewest; count < fewest + 3; ++count) {
      // More slots take longer than what there is, however even they are.
      if (Score(false, most_work + count * fixed) >= least_) break;
      std::vector<DraftGroup> groups = wide;
      bool is_packed = true;
      for (const auto& [first, items] : items_of_cell) {
        const auto even = even_groups(problem_, {.first = first, .size = size}, items,
                                      std::max(1, count - num_wide[first]));
        if (even) groups.insert(groups.end(), even->begin(), even->end());
        is_packed = is_packed && even.has_value();
      }
      if (is_packed) consider(sorted_slots(problem_, std::move(groups)));
    }
  }

  const Problem& problem_;
  Nanoseconds bound_;
  DraftSlots best_;
  Score least_ = worst;
};

}  // namespace

DraftSlots search_kept_slots(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  return KeptSlots(problem, bound).run(work);
}

}  // namespace isochron
