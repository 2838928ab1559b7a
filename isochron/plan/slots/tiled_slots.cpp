// Micro-batches that cannot fill their slot are pooled and dealt into fewer slots, which have more
// of them to choose sizes for: dearest first, each into the slot with the least to do that has room
// for it. What is not filled then is dealt into half as many again. Where what is left of that
// cannot run on all ranks, slots get as many micro-batches each.

#include "isochron/plan/slots/tiled_slots.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

namespace isochron {

namespace {

// The place of the smallest size on which a load ends by then, or else of the fastest.
std::size_t place_within(const TimesBySize& times, Nanoseconds limit) {
  std::size_t fastest = times.size();
  for (std::size_t p = 0; p < times.size(); ++p) {
    if (times[p] < 0) continue;
    if (times[p] <= limit) return p;
    if (fastest == times.size() || times[p] < times[fastest]) fastest = p;
  }
  return fastest;
}

}  // namespace

TiledSlots::TiledSlots(const Problem& problem, std::int32_t multiple)
    : problem_(problem), multiple_(multiple), tiler_(problem) {}

// The groups of a slot with these micro-batches; some may be split. Empty if they do not fill it.
std::vector<DraftGroup> TiledSlots::tiled(Pool pool) const {
  std::vector<TimesBySize> times;
  for (const Microbatch& each : pool) times.push_back(tiler_.times_of(each));
  // As many groups as there are powers of two in a sum are enough for every number of ranks.
  const auto most =
      static_cast<int>(std::bit_width(static_cast<std::uint32_t>(problem_.num_ranks())));
  for (int trial = 0; trial <= most; ++trial) {
    const std::vector<RankRange> ranges = tiler_.find(times);
    if (!ranges.empty()) {
      std::vector<DraftGroup> groups;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        groups.push_back({.ranks = ranges[i], .items = std::move(pool[i])});
      }
      return groups;
    }
    const auto donor = std::max_element(
        pool.begin(), pool.end(),
        [](const Microbatch& a, const Microbatch& b) { return a.size() < b.size(); });
    if (donor == pool.end() || donor->size() < 2) break;
    const Microbatch split = {donor->back()};
    donor->pop_back();
    times[static_cast<std::size_t>(donor - pool.begin())] = tiler_.times_of(*donor);
    times.push_back(tiler_.times_of(split));
    pool.push_back(split);
  }
  return {};
}

// The least time, to about a hundredth, in which loads end side by side in so many slots if they
// fill these whatever their sizes; at most `limit`.
Nanoseconds TiledSlots::time_of_slots(std::span<const TimesBySize> loads, std::int32_t num_slots,
                                      Nanoseconds limit) const {
  const std::int64_t room = std::int64_t{num_slots} * problem_.num_ranks();
  const auto has_room = [&](Nanoseconds time) {
    std::int64_t left = room;
    for (const TimesBySize& load : loads) left -= problem_.sizes()[place_within(load, time)];
    return left >= 0;
  };
  Nanoseconds low = 0;
  while (limit - low > 1 + limit / 128) {
    const Nanoseconds middle = low + (limit - low) / 2;
    (has_room(middle) ? limit : low) = middle;
  }
  return limit;
}

// Adds the slots that are filled, up to so many; what they do not hold stays in the pool. How many
// there are.
std::int32_t TiledSlots::deal(Pool& pool, std::int32_t num_slots, DraftSlots& slots) const {
  std::vector<TimesBySize> loads;
  Nanoseconds limit = 1;
  for (const Microbatch& each : pool) {
    loads.push_back(tiler_.times_of(each));
    limit = std::max(limit, *std::max_element(loads.back().begin(), loads.back().end()));
  }
  Pool unfilled;
  std::int32_t num_filled = 0;
  for (std::int32_t num_left = num_slots; num_left > 0 && !pool.empty();) {
    // Of many slots the next few are as long.
    const std::int32_t num_next = 1 + (num_left - 1) / 16;
    limit = time_of_slots(loads, num_left, limit);
    num_left -= num_next;
    std::vector<std::pair<Nanoseconds, std::size_t>> slowest;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      slowest.emplace_back(-loads[i][place_within(loads[i], limit)], i);
    }
    std::sort(slowest.begin(), slowest.end());
    for (std::int32_t k = 0; k < num_next; ++k) {
      const Pool here = taken(slowest, loads, limit, pool);
      std::vector<DraftGroup> groups = tiled(here);
      if (groups.empty()) {
        unfilled.insert(unfilled.end(), here.begin(), here.end());
        continue;
      }
      slots.push_back(std::move(groups));
      ++num_filled;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (pool[i].empty()) continue;
      std::swap(pool[count], pool[i]);
      std::swap(loads[count], loads[i]);
      ++count;
    }
    pool.resize(count);
    loads.resize(count);
  }
  pool.insert(pool.end(), unfilled.begin(), unfilled.end());
  return num_filled;
}

// What a slot of that time has room for, in the order of these places in the pool; empty
// micro-batches stay behind.
TiledSlots::Pool TiledSlots::taken(const std::vector<std::pair<Nanoseconds, std::size_t>>& slowest,
                                   std::span<const TimesBySize> loads, Nanoseconds limit,
                                   Pool& pool) const {
  std::int32_t num_free = problem_.num_ranks();
  Pool here;
  for (const auto& [time, i] : slowest) {
    if (num_free == 0) break;
    if (pool[i].empty()) continue;
    const std::int32_t size = problem_.sizes()[place_within(loads[i], limit)];
    if (size > num_free) continue;
    num_free -= size;
    here.push_back(std::move(pool[i]));
    pool[i].clear();
  }
  return here;
}

// All items of the pool in as few micro-batches on all ranks as they need; false if these are not
// admitted.
bool TiledSlots::run_on_all(const Pool& pool, DraftSlots& slots) const {
  if (pool.empty()) return true;
  const std::int32_t all = problem_.num_ranks();
  if (problem_.sizes().back() != all || problem_.cheapest_price(all) < 0) return false;
  std::vector<ItemId> items;
  for (const Microbatch& each : pool) items.insert(items.end(), each.begin(), each.end());
  std::stable_sort(items.begin(), items.end(), [&](ItemId a, ItemId b) {
    return problem_.tokens(all, a) > problem_.tokens(all, b);
  });
  for (Microbatch& each : first_fit(problem_, all, items)) {
    for (const ItemId item : each) {
      if (!problem_.item_fits(all, item)) return false;
    }
    slots.push_back({{.ranks = {.first = 0, .size = all}, .items = std::move(each)}});
  }
  return true;
}

// Adds slots until their number is a multiple of what it has to be: items leave micro-batches that
// hold several, the last first. False if there are too few.
bool TiledSlots::complete(DraftSlots& slots) const {
  while (static_cast<std::int32_t>(slots.size()) % multiple_ != 0) {
    DraftGroup* donor = nullptr;
    for (auto& slot : slots) {
      for (DraftGroup& group : slot) {
        if (group.items.size() >= 2) donor = &group;
      }
    }
    if (donor == nullptr) return false;
    const Pool split = {{donor->items.back()}};
    donor->items.pop_back();
    if (!run_on_all(split, slots)) return false;
  }
  return true;
}

std::optional<DraftSlots> TiledSlots::finished(DraftSlots slots, Pool pool,
                                               std::int32_t num_slots) const {
  while (num_slots > 0 && !pool.empty()) {
    const std::int32_t num_filled = deal(pool, num_slots, slots);
    num_slots = (num_slots - num_filled) / 2;
  }
  if (!run_on_all(pool, slots) || !complete(slots)) return std::nullopt;
  return slots;
}

// Wider ranks of a group that hold it, and all ranks of which are its own or idle.
std::optional<RankRange> TiledSlots::find_wider(const DraftGroup& group,
                                                const std::vector<bool>& is_taken) const {
  const RankRange& ranks = group.ranks;
  const TimesBySize times = tiler_.times_of(group.items);
  for (std::size_t p = 0; p < times.size(); ++p) {
    const std::int64_t size = problem_.sizes()[p];
    if (size <= ranks.size || times[p] < 0) continue;
    const std::int64_t step = problem_.first_step(problem_.sizes()[p]);
    const std::int64_t least = std::max<std::int64_t>(0, ranks.first + ranks.size - size);
    for (std::int64_t first = (least + step - 1) / step * step;
         first <= ranks.first && first + size <= problem_.num_ranks(); first += step) {
      const auto taken = is_taken.begin();
      const bool is_free =
          std::find(taken + first, taken + ranks.first, true) == taken + ranks.first &&
          std::find(taken + ranks.first + ranks.size, taken + first + size, true) ==
              taken + first + size;
      const RankRange wider{.first = first, .size = size};
      if (is_free && problem_.price_of(wider) >= 0) return wider;
    }
  }
  return std::nullopt;
}

// Groups widen over idle ranks beside them; no other rank changes what it runs. Empty if some rank
// still idles.
std::vector<DraftGroup> TiledSlots::widened(std::vector<DraftGroup> groups) const {
  std::erase_if(groups, [](const DraftGroup& group) { return group.items.empty(); });
  std::vector<bool> is_taken(static_cast<std::size_t>(problem_.num_ranks()), false);
  const auto take = [&](const RankRange& ranks) {
    std::fill_n(is_taken.begin() + ranks.first, ranks.size, true);
  };
  for (const DraftGroup& group : groups) take(group.ranks);
  for (DraftGroup& group : groups) {
    while (const auto wider = find_wider(group, is_taken)) {
      group.ranks = *wider;
      take(group.ranks);
    }
  }
  const bool is_full = std::find(is_taken.begin(), is_taken.end(), false) == is_taken.end();
  return is_full ? groups : std::vector<DraftGroup>{};
}

std::vector<DraftSlots> TiledSlots::refilled(const DraftSlots& slots) const {
  std::vector<DraftSlots> found = refilled(slots, Ranks::kept);
  for (DraftSlots& full : refilled(slots, Ranks::free)) found.push_back(std::move(full));
  return found;
}

std::vector<DraftSlots> TiledSlots::refilled(const DraftSlots& slots, Ranks ranks) const {
  DraftSlots kept;
  Pool pool;
  for (const auto& slot : slots) {
    Pool own;
    for (const DraftGroup& group : slot) {
      if (!group.items.empty()) own.push_back(group.items);
    }
    std::vector<DraftGroup> groups;
    if (own.size() == slot.size()) {
      groups = slot;
    } else if (ranks == Ranks::kept) {
      groups = widened(slot);
    }
    if (groups.empty()) groups = tiled(own);
    if (groups.empty()) {
      pool.insert(pool.end(), own.begin(), own.end());
    } else {
      kept.push_back(std::move(groups));
    }
  }
  std::vector<DraftSlots> found;
  const auto num_short = static_cast<std::int32_t>(slots.size() - kept.size());
  const auto num_kept = static_cast<std::int32_t>(kept.size());
  for (std::int32_t count = num_short; count >= 0;) {
    if (auto full = finished(kept, pool, count)) found.push_back(*std::move(full));
    if (count == 0) break;
    count /= 2;
    count = std::max(0, count - (num_kept + count) % multiple_);
  }
  return found;
}

// Items on their own; where there are more than that, those with the fewest tokens together. None
// if the limits forbid it.
std::optional<TiledSlots::Pool> TiledSlots::single_items(std::size_t most) const {
  Pool pool;
  for (ItemId item = 0; item < problem_.num_items(); ++item) pool.push_back({item});
  if (pool.size() <= most) return pool;
  const std::int32_t size = problem_.sizes().front();
  const std::int32_t max_sequences = problem_.options().max_sequences;
  struct Load {
    Tokens tokens = 0;
    std::int32_t num_sequences = 0;
    std::size_t index = 0;
    auto operator<=>(const Load&) const = default;
  };
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const ItemId item = pool[i].front();
    lightest.push({problem_.tokens(size, item), problem_.num_sequences(item), i});
  }
  std::size_t count = pool.size();
  for (; count > most; --count) {
    Load first = lightest.top();
    lightest.pop();
    const Load second = lightest.top();
    lightest.pop();
    first.tokens += second.tokens;
    first.num_sequences += second.num_sequences;
    if (first.tokens > problem_.capacity() * size) return std::nullopt;
    if (max_sequences > 0 && first.num_sequences > max_sequences) return std::nullopt;
    Microbatch& from = pool[second.index];
    pool[first.index].insert(pool[first.index].end(), from.begin(), from.end());
    from.clear();
    lightest.push(first);
  }
  std::erase_if(pool, [](const Microbatch& each) { return each.empty(); });
  return pool;
}

std::optional<DraftSlots> TiledSlots::dealt(std::int32_t num_slots) const {
  const auto most = static_cast<std::size_t>(num_slots) *
                    static_cast<std::size_t>(problem_.num_ranks() / problem_.sizes().front());
  auto pool = single_items(most);
  if (!pool) return std::nullopt;
  if (auto slots = finished({}, *pool, num_slots)) return slots;
  return in_turns(*std::move(pool), num_slots);
}

// The dearest first, to the first slot and on to the last, and back.
std::optional<DraftSlots> TiledSlots::in_turns(Pool pool, std::int32_t num_slots) const {
  std::vector<std::pair<Nanoseconds, std::size_t>> dearest;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const TimesBySize times = tiler_.times_of(pool[i]);
    dearest.emplace_back(-*std::max_element(times.begin(), times.end()), i);
  }
  std::sort(dearest.begin(), dearest.end());
  const auto count = static_cast<std::size_t>(num_slots);
  std::vector<Pool> parts(count);
  for (std::size_t k = 0; k < dearest.size(); ++k) {
    const std::size_t place = k % count;
    const std::size_t slot = k / count % 2 == 0 ? place : count - 1 - place;
    parts[slot].push_back(std::move(pool[dearest[k].second]));
  }
  DraftSlots slots;
  for (Pool& part : parts) {
    slots.push_back(tiled(std::move(part)));
    if (slots.back().empty()) return std::nullopt;
  }
  return slots;
}

}  // namespace isochron
