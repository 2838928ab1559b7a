#include "isochron/plan/draft_slots.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "isochron/balance/assignment.h"
#include "isochron/plan/idle_cells.h"
#include "isochron/simulate/chunk_cost.h"

namespace isochron {

namespace {

// Which group each rank is in, in one slot; -1: none.
std::vector<std::int32_t> groups_by_rank(const Problem& problem,
                                         const std::vector<DraftGroup>& slot) {
  std::vector<std::int32_t> group_of(static_cast<std::size_t>(problem.num_ranks()), -1);
  for (std::size_t g = 0; g < slot.size(); ++g) {
    const auto first = static_cast<std::size_t>(slot[g].ranks.first);
    for (std::size_t r = first; r < first + static_cast<std::size_t>(slot[g].ranks.size); ++r) {
      group_of[r] = static_cast<std::int32_t>(g);
    }
  }
  return group_of;
}

// Items that may leave a micro-batch which holds several, by what they cost on a cell.
class Movable {
 public:
  Movable(const Problem& problem, DraftSlots& slots) : problem_(problem), slots_(slots) {
    for (std::size_t s = 0; s < slots.size(); ++s) {
      for (std::size_t g = 0; g < slots[s].size(); ++g) {
        if (slots[s][g].items.size() < 2) continue;
        for (const ItemId item : slots[s][g].items) offer(s, g, item);
      }
    }
  }

  // Takes an item out of its micro-batch, for a cell that idles: the dearest that costs at most
  // `limit`, else the cheapest; where every rank runs for itself, of the same ranks first, which
  // keeps their sum. None if there is none left, or if bundles keep their ranks and these ranks
  // have none.
  std::optional<ItemId> take(RankRange cell, Nanoseconds limit) {
    const bool is_kept = problem_.options().keep_groups == KeepGroups::rank;
    if (is_kept || problem_.options().sync == Sync::step) {
      const auto own = of_cell_.find(cell.first);
      if (own != of_cell_.end()) {
        if (const auto item = take(own->second, limit)) return item;
      }
      if (is_kept) return std::nullopt;
      limit = 0;
    }
    return take(all_, limit);
  }

 private:
  using Offer = std::tuple<Nanoseconds, ItemId, std::size_t, std::size_t>;  // .., slot, group
  using Offers = std::set<Offer>;

  std::optional<ItemId> take(Offers& offers, Nanoseconds limit) {
    while (!offers.empty()) {
      auto best = offers.upper_bound({limit, problem_.num_items(), 0, 0});
      if (best != offers.begin()) --best;
      const auto [cost, item, s, g] = *best;
      offers.erase(best);
      std::vector<ItemId>& items = slots_[s][g].items;
      const auto place = std::find(items.begin(), items.end(), item);
      if (items.size() < 2 || place == items.end()) continue;
      items.erase(place);
      return item;
    }
    return std::nullopt;
  }

  void offer(std::size_t s, std::size_t g, ItemId item) {
    const std::int32_t size = problem_.sizes().front();
    if (!problem_.item_fits(size, item)) return;
    const Nanoseconds cost = problem_.item_cost(problem_.cheapest_price(size), item);
    all_.emplace(cost, item, s, g);
    if (slots_[s][g].ranks.size == size) {
      of_cell_[slots_[s][g].ranks.first].emplace(cost, item, s, g);
    }
  }

  const Problem& problem_;
  DraftSlots& slots_;
  Offers all_;
  std::map<std::int64_t, Offers> of_cell_;  // by the first rank
};

// Runs a group for so long once its last member is free.
void run(const DraftGroup& group, Nanoseconds time, std::vector<Nanoseconds>& free_at) {
  const auto first = free_at.begin() + group.ranks.first;
  const auto last = first + group.ranks.size;
  std::fill(first, last, *std::max_element(first, last) + time);
}

// The pass of a training step that is asked for.
Nanoseconds pass_time(const Problem& problem, Nanoseconds time) {
  if (problem.options().pass == Pass::train) return time;
  return split_cost(time, problem.model().forward_share).forward;
}

}  // namespace

DraftSlots slots_of(const Problem& problem, const Draft& draft) {
  std::vector<std::size_t> next(static_cast<std::size_t>(problem.num_ranks()), 0);
  DraftSlots slots;
  for (const DraftGroup& group : draft.groups) {
    const auto first = next.begin() + group.ranks.first;
    const auto last = first + group.ranks.size;
    const std::size_t slot = *std::max_element(first, last);
    std::fill(first, last, slot + 1);
    if (slot >= slots.size()) slots.resize(slot + 1);
    slots[slot].push_back(group);
  }
  return slots;
}

bool has_one_price(const Problem& problem) {
  for (const std::int32_t size : problem.sizes()) {
    const PriceId price = problem.cheapest_price(size);
    for (std::int32_t first = 0; first + size <= problem.num_ranks();
         first += problem.first_step(size)) {
      if (problem.price_of({.first = first, .size = size}) != price) return false;
    }
  }
  return true;
}

std::vector<std::vector<ItemId>> first_fit(const Problem& problem, std::int32_t size,
                                           std::span<const ItemId> items) {
  const std::int32_t max_sequences = problem.options().max_sequences;
  std::vector<std::vector<ItemId>> groups;
  std::vector<Tokens> rooms;
  std::vector<std::int32_t> seats;
  for (const ItemId item : items) {
    const Tokens needs = problem.tokens(size, item);
    const std::int32_t sequences = max_sequences == 0 ? 0 : problem.num_sequences(item);
    std::size_t i = 0;
    while (i < groups.size() && (rooms[i] < needs || seats[i] < sequences)) ++i;
    if (i == groups.size()) {
      groups.emplace_back();
      rooms.push_back(problem.capacity() * size);
      seats.push_back(max_sequences);
    }
    groups[i].push_back(item);
    rooms[i] -= needs;
    seats[i] -= sequences;
  }
  return groups;
}

Nanoseconds group_time(const Problem& problem, const DraftGroup& group) {
  const Nanoseconds time =
      group.items.empty() ? problem.microbatch() : problem.group_cost(group.ranks, group.items);
  return Problem::slowed(time, problem.slowness(group.ranks));
}

Nanoseconds slots_time(const Problem& problem, const DraftSlots& slots) {
  Nanoseconds sum = 0;
  for (const auto& slot : slots) {
    Nanoseconds slowest = 0;
    for (const DraftGroup& group : slot) slowest = std::max(slowest, group_time(problem, group));
    sum += slowest;
  }
  return sum;
}

Nanoseconds step_time(const Problem& problem, const Draft& draft) {
  std::vector<Nanoseconds> free_at(static_cast<std::size_t>(problem.num_ranks()), 0);
  for (const DraftGroup& group : draft.groups) run(group, group_time(problem, group), free_at);
  return *std::max_element(free_at.begin(), free_at.end());
}

std::vector<Nanoseconds> rank_times(const Problem& problem, const DraftSlots& slots) {
  std::vector<Nanoseconds> free_at(static_cast<std::size_t>(problem.num_ranks()), 0);
  for (const auto& slot : slots) {
    for (const DraftGroup& group : slot) run(group, group_time(problem, group), free_at);
  }
  return free_at;
}

Nanoseconds step_time(const Problem& problem, const DraftSlots& slots) {
  const std::vector<Nanoseconds> times = rank_times(problem, slots);
  return *std::max_element(times.begin(), times.end());
}

Nanoseconds predicted_time(const Problem& problem, const DraftSlots& slots) {
  std::vector<Nanoseconds> free_at(static_cast<std::size_t>(problem.num_ranks()), 0);
  for (const auto& slot : slots) {
    for (const DraftGroup& group : slot) {
      run(group, pass_time(problem, group_time(problem, group)), free_at);
    }
    if (problem.options().sync == Sync::microbatch) {
      std::fill(free_at.begin(), free_at.end(), *std::max_element(free_at.begin(), free_at.end()));
    }
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

namespace {

// A placeholder for every rank that idles in a slot.
void add_placeholders(const Problem& problem, DraftSlots& slots) {
  for (auto& slot : slots) {
    const std::vector<std::int32_t> group_of = groups_by_rank(problem, slot);
    for (std::size_t r = 0; r < group_of.size(); ++r) {
      if (group_of[r] < 0) {
        slot.push_back({.ranks = {.first = static_cast<std::int64_t>(r), .size = 1}});
      }
    }
  }
}

}  // namespace

void equalize(const Problem& problem, std::int32_t multiple, DraftSlots& slots) {
  const auto m = static_cast<std::size_t>(multiple);
  slots.resize((slots.size() + m - 1) / m * m);
  const PlanOptions& options = problem.options();
  if (options.sync == Sync::step && options.keep_groups != KeepGroups::rank &&
      problem.topology().pipeline.stages == 1) {
    fill_idle_cells(problem, slots);
    add_placeholders(problem, slots);
    return;
  }
  std::vector<IdleCell> cells = idle_cells(problem, slots);
  std::vector<Nanoseconds> slowest(slots.size(), 0);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    for (const DraftGroup& group : slots[s]) {
      slowest[s] = std::max(slowest[s], group_time(problem, group));
    }
  }
  // Long slots first: they take the dear items without getting longer.
  std::stable_sort(cells.begin(), cells.end(), [&](const IdleCell& a, const IdleCell& b) {
    return slowest[a.slot] > slowest[b.slot];
  });
  if (!cells.empty()) {
    std::vector<std::pair<std::size_t, DraftGroup>> fresh;
    Movable movable(problem, slots);
    for (const IdleCell& cell : cells) {
      const auto item = movable.take(cell.ranks, slowest[cell.slot] - problem.microbatch());
      if (item) fresh.push_back({cell.slot, {.ranks = cell.ranks, .items = {*item}}});
    }
    for (auto& [slot, group] : fresh) slots[slot].push_back(std::move(group));
  }
  add_placeholders(problem, slots);
}

bool has_placeholder(const DraftSlots& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const auto& slot) {
    return std::any_of(slot.begin(), slot.end(),
                       [](const DraftGroup& group) { return group.items.empty(); });
  });
}

bool widen(const Problem& problem, std::int32_t multiple, DraftSlots& slots) {
  if (problem.options().keep_groups == KeepGroups::rank)
    return false;  // all of a bundle would move
  DraftSlots result;
  std::vector<ItemId> rest;
  for (auto& slot : slots) {
    std::erase_if(slot, [](const DraftGroup& group) { return group.items.empty(); });
    for (bool is_changed = !slot.empty(); is_changed;) {
      is_changed = false;
      const std::vector<std::int32_t> group_of = groups_by_rank(problem, slot);
      for (std::size_t g = 0; g < slot.size() && !is_changed; ++g) {
        DraftGroup& group = slot[g];
        if (problem.is_alone(group.items.front())) continue;
        for (const std::int32_t size : problem.sizes()) {
          if (size <= group.ranks.size) continue;
          const std::int64_t step = problem.first_step(size);
          const std::int64_t first_start =
              problem.is_aligned()
                  ? group.ranks.first / step * step
                  : std::max<std::int64_t>(0, group.ranks.first + group.ranks.size - size);
          for (std::int64_t first = first_start;
               first <= group.ranks.first && first + size <= problem.num_ranks(); first += step) {
            const RankRange ranks{.first = first, .size = size};
            Tokens tokens = 0;
            bool is_small = true;
            for (const ItemId item : group.items) {
              tokens += problem.tokens(size, item);
              is_small = is_small && problem.item_fits(size, item);
            }
            const auto begin = group_of.begin() + first;
            const bool is_free = first + size >= group.ranks.first + group.ranks.size && is_small &&
                                 tokens <= problem.capacity() * size &&
                                 problem.price_of(ranks) >= 0 &&
                                 std::all_of(begin, begin + size, [&](std::int32_t other) {
                                   return other < 0 || other == static_cast<std::int32_t>(g);
                                 });
            if (!is_free) continue;
            group.ranks = ranks;
            is_changed = true;
            break;
          }
          if (is_changed) break;
        }
      }
    }
    std::int64_t covered = 0;
    for (const DraftGroup& group : slot) covered += group.ranks.size;
    if (covered == problem.num_ranks()) {
      result.push_back(std::move(slot));
    } else {
      for (const DraftGroup& group : slot)
        rest.insert(rest.end(), group.items.begin(), group.items.end());
    }
  }
  const std::int32_t all = problem.num_ranks();
  if (!rest.empty() && problem.sizes().back() != all) return false;
  const auto alone = [&](ItemId item) {
    result.push_back({{.ranks = {.first = 0, .size = all}, .items = {item}}});
    return problem.item_fits(all, item);
  };
  for (const ItemId item : rest) {
    if (!alone(item)) return false;
  }
  while (static_cast<std::int32_t>(result.size()) % multiple != 0) {
    DraftGroup* donor = nullptr;
    for (auto& slot : result) {
      for (DraftGroup& group : slot) {
        if (group.items.size() >= 2) donor = &group;
      }
    }
    if (donor == nullptr || problem.sizes().back() != all) return false;
    const ItemId item = donor->items.back();
    donor->items.pop_back();
    if (!alone(item)) return false;
  }
  slots = std::move(result);
  return true;
}

bool fill_groups(const Problem& problem, std::int32_t size, std::int32_t multiple,
                 DraftSlots& slots) {
  const std::int32_t num_cells = problem.num_ranks() / size;
  if (problem.num_ranks() % size != 0) return false;
  for (std::int64_t first = 0; first < problem.num_ranks(); first += size) {
    if (problem.price_of({.first = first, .size = size}) < 0) return false;  // idles in every slot
  }
  if (problem.options().keep_groups == KeepGroups::rank && num_cells > 1) return false;
  const PriceId price = problem.cheapest_price(size);
  const auto count = static_cast<std::size_t>(problem.num_items());
  std::vector<Nanoseconds> costs(count);
  std::vector<Tokens> tokens(count);
  std::vector<std::int32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto item = static_cast<ItemId>(i);
    if (!problem.item_fits(size, item)) return false;
    costs[i] = problem.item_cost(price, item);
    tokens[i] = std::min(problem.tokens(size, item), problem.capacity() * size);
    sizes[i] = problem.num_sequences(item);
  }
  const std::int32_t most = problem.num_items() / num_cells / multiple * multiple;
  for (std::int32_t m = most; m >= 1; m -= multiple) {
    Limits limits{.capacity = problem.capacity() * size, .min_units = 1};
    if (problem.options().max_sequences > 0) limits.max_size = problem.options().max_sequences;
    const Assignment assignment = assign({.costs = costs, .tokens = tokens, .sizes = sizes},
                                         m * num_cells, limits, RefineGoal::largest, std::nullopt);
    if (!assignment.bin_of) continue;
    std::vector<DraftGroup> groups(static_cast<std::size_t>(m * num_cells));
    for (std::size_t i = 0; i < count; ++i) {
      groups[static_cast<std::size_t>((*assignment.bin_of)[i])].items.push_back(
          static_cast<ItemId>(i));
    }
    // Those of a slot take equally long; within a slot the order of ranks alternates, so that the
    // sums of the ranks stay even.
    std::vector<std::pair<Nanoseconds, std::size_t>> order;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].ranks = {.first = 0, .size = size};
      order.emplace_back(-group_time(problem, groups[g]), g);
    }
    std::sort(order.begin(), order.end());
    slots.assign(static_cast<std::size_t>(m), {});
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto slot = k / static_cast<std::size_t>(num_cells);
      const auto place = static_cast<std::int64_t>(k % static_cast<std::size_t>(num_cells));
      DraftGroup& group = groups[order[k].second];
      group.ranks.first = (slot % 2 == 0 ? place : num_cells - 1 - place) * size;
      slots[slot].push_back(std::move(group));
    }
    return true;
  }
  return false;
}

}  // namespace isochron
