#include "isochron/plan/draft_slots.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "isochron/plan/idle_cells.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/step_player.h"

namespace isochron {

namespace {

// An item that may leave its group.
struct Offer {
  Nanoseconds cost = 0;
  ItemId item = 0;
  std::size_t slot = 0;
  std::size_t group = 0;
};

// Each is taken once.
class Offers {
 public:
  explicit Offers(std::vector<Offer> offers) : sorted_(std::move(offers)) {
    std::sort(sorted_.begin(), sorted_.end(), [](const Offer& a, const Offer& b) {
      return std::pair(a.cost, a.item) < std::pair(b.cost, b.item);
    });
    last_left_.resize(sorted_.size() + 1);
    std::iota(last_left_.begin(), last_left_.end(), std::size_t{0});
  }

  // The dearest that costs at most `limit`, else the cheapest; none if all are taken.
  std::optional<Offer> take(Nanoseconds limit) {
    const auto end = std::partition_point(sorted_.begin(), sorted_.end(),
                                          [&](const Offer& offer) { return offer.cost <= limit; }) -
                     sorted_.begin();
    std::size_t found = last_left(static_cast<std::size_t>(end));
    if (found == 0) {
      while (cheapest_ <= sorted_.size() && last_left_[cheapest_] != cheapest_) ++cheapest_;
      if (cheapest_ > sorted_.size()) return std::nullopt;
      found = cheapest_;
    }
    last_left_[found] = found - 1;
    return sorted_[found - 1];
  }

 private:
  // How many of the first `count` there are up to the last one that is left.
  std::size_t last_left(std::size_t count) {
    while (last_left_[count] != count) {
      last_left_[count] = last_left_[last_left_[count]];
      count = last_left_[count];
    }
    return count;
  }

  std::vector<Offer> sorted_;
  std::vector<std::size_t> last_left_;  // of so many: as many, or fewer if the last one is taken
  std::size_t cheapest_ = 1;            // fewer than that have none that is left
};

// Items that may leave a micro-batch which holds several, by what they cost on a cell. Those of a
// cell, and all of them, are listed when they are asked for.
class Movable {
 public:
  Movable(const Problem& problem, DraftSlots& slots)
      : problem_(problem),
        slots_(slots),
        groups_at_(static_cast<std::size_t>(problem.num_ranks())) {
    const std::int32_t size = problem.sizes().front();
    for (std::size_t s = 0; s < slots.size(); ++s) {
      for (std::size_t g = 0; g < slots[s].size(); ++g) {
        const DraftGroup& group = slots[s][g];
        if (group.ranks.size != size || group.items.size() < 2) continue;
        groups_at_[static_cast<std::size_t>(group.ranks.first)].push_back({s, g});
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
      if (const auto item = take(offers_of(cell.first), limit)) return item;
      if (is_kept) return std::nullopt;
      limit = 0;
    }
    return take(all_offers(), limit);
  }

 private:
  std::optional<ItemId> take(Offers& offers, Nanoseconds limit) {
    while (const auto best = offers.take(limit)) {
      std::vector<ItemId>& items = slots_[best->slot][best->group].items;
      const auto place = std::find(items.begin(), items.end(), best->item);
      if (items.size() < 2 || place == items.end()) continue;
      items.erase(place);
      return best->item;
    }
    return std::nullopt;
  }

  void offer(std::size_t s, std::size_t g, std::vector<Offer>& offers) const {
    const std::int32_t size = problem_.sizes().front();
    for (const ItemId item : slots_[s][g].items) {
      if (!problem_.item_fits(size, item)) continue;
      offers.push_back({problem_.item_cost(problem_.cheapest_price(size), item), item, s, g});
    }
  }

  Offers& offers_of(std::int64_t first) {
    const auto found = of_cell_.find(first);
    if (found != of_cell_.end()) return found->second;
    std::vector<Offer> own;
    for (const auto& [s, g] : groups_at_[static_cast<std::size_t>(first)]) offer(s, g, own);
    return of_cell_.emplace(first, Offers(std::move(own))).first->second;
  }

  Offers& all_offers() {
    if (all_) return *all_;
    std::vector<Offer> all;
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      for (std::size_t g = 0; g < slots_[s].size(); ++g) {
        if (slots_[s][g].items.size() > 1) offer(s, g, all);
      }
    }
    return all_.emplace(std::move(all));
  }

  const Problem& problem_;
  DraftSlots& slots_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> groups_at_;  // slot, group
  std::map<std::int64_t, Offers> of_cell_;                                   // by the first rank
  std::optional<Offers> all_;
};

// Runs a group for so long once its last member is free.
void run(const DraftGroup& group, Nanoseconds time, std::vector<Nanoseconds>& free_at) {
  const auto first = free_at.begin() + group.ranks.first;
  const auto last = first + group.ranks.size;
  std::fill(first, last, *std::max_element(first, last) + time);
}

}  // namespace

Nanoseconds pass_time(const Problem& problem, Nanoseconds time) {
  if (problem.options().pass == Pass::train) return time;
  return split_cost(time, problem.model().forward_share).forward;
}

namespace {

// What the dearest item takes where it runs alone, on ranks that suit it best, rounded as it is
// there: what is dearer is rounded to no less.
Nanoseconds longest_forward(const Problem& problem) {
  constexpr Nanoseconds unknown = std::numeric_limits<Nanoseconds>::max();
  if (problem.has_speeds()) return 0;
  const PriceId narrow = problem.cheapest_price(problem.sizes().front());
  ItemId dearest = 0;
  for (ItemId item = 1; item < problem.num_items(); ++item) {
    if (problem.item_cost(narrow, item) > problem.item_cost(narrow, dearest)) dearest = item;
  }
  Nanoseconds least = unknown;
  for (const std::int32_t size : problem.sizes()) {
    if (!problem.item_fits(size, dearest)) continue;
    least = std::min(least, problem.least_item_cost(size, dearest) + problem.least_fixed(size));
  }
  return least == unknown ? 0 : pass_time(problem, least);  // what stands alone has its own size
}

}  // namespace

Nanoseconds pass_bound(const Problem& problem, Nanoseconds bound) {
  const bool is_of_pass = problem.topology().pipeline.stages > 1;
  if (problem.options().pass == Pass::train || is_of_pass) return bound;
  // Every micro-batch rounds its forward part once, down by half a nanosecond at most.
  const double forward = problem.model().forward_share * static_cast<double>(bound);
  const double rounding = 0.5 * problem.num_items() + 1e-3 + forward * 1e-12;
  return std::max(longest_forward(problem),
                  static_cast<Nanoseconds>(std::ceil(forward - rounding)));
}

std::vector<RankRange> admitted_ranges(const Problem& problem) {
  std::vector<RankRange> ranges;
  for (const std::int32_t size : problem.sizes()) {
    for (std::int32_t first = 0; first + size <= problem.num_ranks();
         first += problem.first_step(size)) {
      const RankRange ranks{.first = first, .size = size};
      if (problem.price_of(ranks) >= 0) ranges.push_back(ranks);
    }
  }
  return ranges;
}

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

bool has_one_price(const Problem& problem, std::span<const std::int32_t> sizes) {
  for (const std::int32_t size : sizes) {
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
  std::size_t num_full = 0;  // of the first groups, by their sequences
  for (const ItemId item : items) {
    const Tokens needs = problem.tokens(size, item);
    const std::int32_t sequences = max_sequences == 0 ? 0 : problem.num_sequences(item);
    while (max_sequences > 0 && num_full < groups.size() && seats[num_full] == 0) ++num_full;
    std::size_t i = num_full;
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

namespace {

Nanoseconds played_time(const Problem& problem, const DraftSlots& slots) {
  const bool is_trained = problem.options().pass == Pass::train;
  std::vector<std::vector<PlayedGroup>> played;
  played.reserve(slots.size());
  for (const auto& slot : slots) {
    auto& groups = played.emplace_back();
    groups.reserve(slot.size());
    for (const DraftGroup& group : slot) {
      PassCost cost = split_cost(group_time(problem, group), problem.model().forward_share);
      if (!is_trained) cost.backward = 0;
      groups.push_back({.ranks = group.ranks, .cost = cost});
    }
  }
  return StepPlayer(problem.topology(), problem.options(), std::move(played)).time();
}

}  // namespace

Nanoseconds predicted_time(const Problem& problem, const DraftSlots& slots) {
  if (problem.topology().pipeline.stages > 1) return played_time(problem, slots);
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

}  // namespace isochron
