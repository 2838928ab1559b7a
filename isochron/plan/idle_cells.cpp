// A rank that has several items in one of its own micro-batches splits that: it does the same work.
// The dearest one leaves, so that others can have the cheap ones. A wide group whose ranks all idle
// in some slot splits likewise, at the price of its latency. What idles then gets the cheapest
// items of all, the dearest of them on the rank that is done first; in the last of its slots that
// idles, where few groups wait for it.

#include "isochron/plan/idle_cells.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "isochron/plan/draft_slots.h"

namespace isochron {

std::vector<IdleCell> idle_cells(const Problem& problem, const DraftSlots& slots) {
  std::vector<IdleCell> cells;
  const std::int32_t size = problem.sizes().front();
  std::vector<bool> is_busy(static_cast<std::size_t>(problem.num_ranks()));
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::fill(is_busy.begin(), is_busy.end(), false);
    for (const DraftGroup& group : slots[s]) {
      const auto first = is_busy.begin() + group.ranks.first;
      std::fill(first, first + group.ranks.size, true);
    }
    for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
      const auto begin = is_busy.begin() + first;
      const RankRange ranks{.first = first, .size = size};
      if (std::find(begin, begin + size, true) == begin + size && problem.price_of(ranks) >= 0) {
        cells.push_back({.slot = s, .ranks = ranks});
      }
    }
  }
  return cells;
}

namespace {

class IdleFill {
 public:
  IdleFill(const Problem& problem, DraftSlots& slots)
      : problem_(problem), slots_(slots), size_(problem.sizes().front()) {
    for (const IdleCell& cell : idle_cells(problem, slots)) {
      idle_[cell.ranks.first].push_back(cell.slot);
    }
  }

  void split_own() {
    std::map<std::int64_t, std::vector<DraftGroup*>> own;  // of cells that idle
    for (auto& slot : slots_) {
      for (DraftGroup& group : slot) {
        if (group.ranks.size == size_ && group.items.size() > 1 &&
            idle_.count(group.ranks.first) > 0) {
          own[group.ranks.first].push_back(&group);
        }
      }
    }
    std::vector<std::pair<std::size_t, DraftGroup>> fresh;
    for (const auto& [first, groups] : own) {
      std::vector<std::size_t>& left = idle_[first];
      for (DraftGroup* group : groups) {
        while (group->items.size() > 1 && !left.empty()) {
          const auto dearest = std::max_element(
              group->items.begin(), group->items.end(),
              [&](ItemId a, ItemId b) { return std::pair(cost(a), a) < std::pair(cost(b), b); });
          fresh.push_back({left.back(), {.ranks = group->ranks, .items = {*dearest}}});
          group->items.erase(dearest);
          left.pop_back();
        }
      }
    }
    add(std::move(fresh));
  }

  void split_wide() {
    std::vector<DraftGroup*> wide;
    for (auto& slot : slots_) {
      for (DraftGroup& group : slot) {
        if (group.ranks.size > size_ && group.items.size() > 1) wide.push_back(&group);
      }
    }
    std::stable_sort(wide.begin(), wide.end(), [](const DraftGroup* a, const DraftGroup* b) {
      return a->ranks.size > b->ranks.size;
    });
    std::vector<std::pair<std::size_t, DraftGroup>> fresh;
    for (DraftGroup* group : wide) {
      std::vector<std::size_t> left = common_slots(group->ranks);
      while (group->items.size() > 1 && !left.empty()) {
        const auto item = std::find_if(group->items.begin(), group->items.end(), [&](ItemId each) {
          return problem_.item_fits(size_, each);
        });
        if (item == group->items.end()) break;  // none of them has to leave
        fresh.push_back({left.back(), {.ranks = group->ranks, .items = {*item}}});
        group->items.erase(item);
        for (auto cell = first_cell(group->ranks); cell != last_cell(group->ranks); ++cell) {
          std::erase(cell->second, left.back());
        }
        left.pop_back();
      }
    }
    add(std::move(fresh));
  }

  void move_cheapest() {
    std::size_t num_idle = 0;
    for (const auto& [first, left] : idle_) num_idle += left.size();
    if (num_idle == 0) return;
    struct Offer {
      Nanoseconds cost;
      ItemId item;
      DraftGroup* group;
    };
    std::vector<Offer> offers;
    for (auto& slot : slots_) {
      for (DraftGroup& group : slot) {
        if (group.items.size() < 2) continue;
        for (const ItemId item : group.items) {
          if (!problem_.item_fits(size_, item)) continue;
          offers.push_back({cost(item), item, &group});
        }
      }
    }
    std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
      return std::pair(a.cost, a.item) < std::pair(b.cost, b.item);
    });
    std::vector<Offer> taken;
    for (const Offer& offer : offers) {
      if (taken.size() == num_idle) break;
      if (offer.group->items.size() < 2) continue;  // the others have left it
      std::erase(offer.group->items, offer.item);
      taken.push_back(offer);
    }
    std::vector<Nanoseconds> free_at = rank_times(problem_, slots_);
    std::vector<std::pair<std::size_t, DraftGroup>> fresh;
    std::reverse(taken.begin(), taken.end());
    for (const Offer& offer : taken) {
      const auto earliest =
          std::min_element(idle_.begin(), idle_.end(), [&](const auto& a, const auto& b) {
            const auto time = [&](const auto& cell) {
              return std::tuple(cell.second.empty(), free_at[static_cast<std::size_t>(cell.first)],
                                cell.first);
            };
            return time(a) < time(b);
          });
      auto& [first, left] = *earliest;
      fresh.push_back(
          {left.back(), {.ranks = {.first = first, .size = size_}, .items = {offer.item}}});
      left.pop_back();
      free_at[static_cast<std::size_t>(first)] += offer.cost;
    }
    add(std::move(fresh));
  }

 private:
  Nanoseconds cost(ItemId item) const {
    return problem_.item_cost(problem_.cheapest_price(size_), item);
  }

  using Idle = std::map<std::int64_t, std::vector<std::size_t>>;

  // The cells of these ranks that idle in some slot.
  Idle::iterator first_cell(RankRange ranks) { return idle_.lower_bound(ranks.first); }
  Idle::iterator last_cell(RankRange ranks) { return idle_.lower_bound(ranks.first + ranks.size); }

  // Slots in which all cells of these ranks idle.
  std::vector<std::size_t> common_slots(RankRange ranks) {
    std::vector<std::size_t> common;
    std::int64_t covered = 0;
    for (auto cell = first_cell(ranks); cell != last_cell(ranks); ++cell) {
      if (covered == 0) {
        common = cell->second;
      } else {
        std::erase_if(common, [&](std::size_t slot) {
          return !std::binary_search(cell->second.begin(), cell->second.end(), slot);
        });
      }
      covered += size_;
    }
    if (covered != ranks.size) common.clear();
    return common;
  }

  void add(std::vector<std::pair<std::size_t, DraftGroup>>&& fresh) {
    for (auto& [slot, group] : fresh) slots_[slot].push_back(std::move(group));
  }

  const Problem& problem_;
  DraftSlots& slots_;
  std::int32_t size_;
  Idle idle_;  // slots, ascending, by the first rank of a cell
};

}  // namespace

void fill_idle_cells(const Problem& problem, DraftSlots& slots) {
  const bool is_split = std::all_of(slots.begin(), slots.end(), [](const auto& slot) {
    return std::all_of(slot.begin(), slot.end(),
                       [](const DraftGroup& group) { return group.items.size() < 2; });
  });
  if (is_split) return;  // nobody has anything to give
  IdleFill fill(problem, slots);
  fill.split_own();
  fill.split_wide();
  fill.move_cheapest();
}

}  // namespace isochron
