// The slowest group widens as long as there are ranks for it. What is left over then is less than
// any group takes to widen: sizes that add up to all ranks are chosen for all groups at once, which
// takes longer.

#include "isochron/plan/slots/rank_tiler.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>
#include <utility>

namespace isochron {

RankTiler::RankTiler(const Problem& problem)
    : problem_(problem),
      slot_places_(problem),
      sizes_(problem.sizes().begin(), problem.sizes().end()),
      loads_(static_cast<std::size_t>(problem.num_items())) {}

const RankTiler::Load& RankTiler::load_of(ItemId item) const {
  Load& load = loads_[static_cast<std::size_t>(item)];
  if (!load.times.empty()) return load;
  load = {.times = TimesBySize(sizes_.size(), -1), .tokens = std::vector<Tokens>(sizes_.size(), 0)};
  for (std::size_t p = 0; p < sizes_.size(); ++p) {
    const PriceId price = problem_.cheapest_price(sizes_[p]);
    if (price < 0 || !problem_.item_fits(sizes_[p], item)) continue;
    load.times[p] = problem_.item_cost(price, item);
    load.tokens[p] = problem_.tokens(sizes_[p], item);
  }
  return load;
}

TimesBySize RankTiler::times_of(std::span<const ItemId> items) const {
  TimesBySize times(sizes_.size(), -1);
  for (std::size_t p = 0; p < sizes_.size(); ++p) {
    Nanoseconds time = 0;
    Tokens tokens = 0;
    const bool do_fit = std::all_of(items.begin(), items.end(), [&](ItemId item) {
      const Load& load = load_of(item);
      time += load.times[p];
      tokens += load.tokens[p];
      return load.times[p] >= 0;
    });
    if (!do_fit || tokens > problem_.capacity() * sizes_[p]) continue;
    times[p] = time + problem_.price(problem_.cheapest_price(sizes_[p])).fixed;
  }
  return times;
}

// The next larger size that holds a load; the number of sizes if there is none.
std::size_t RankTiler::next_place(const TimesBySize& load, std::size_t place) const {
  ++place;
  while (place < sizes_.size() && load[place] < 0) ++place;
  return place;
}

// Empty if some load fits no size.
RankTiler::Places RankTiler::smallest(std::span<const TimesBySize> loads) const {
  Places places;
  for (const TimesBySize& load : loads) {
    places.push_back(load.front() >= 0 ? 0 : next_place(load, 0));
    if (places.back() == sizes_.size()) return {};
  }
  return places;
}

std::int32_t RankTiler::num_idle(const Places& places) const {
  std::int32_t idle = problem_.num_ranks();
  for (const std::size_t place : places) idle -= sizes_[place];
  return idle;
}

// The slowest first, none that ends later for it.
RankTiler::Places RankTiler::widen(std::span<const TimesBySize> loads, Places places) const {
  std::int32_t idle = num_idle(places);
  std::priority_queue<std::pair<Nanoseconds, std::size_t>> slowest;
  for (std::size_t i = 0; i < loads.size(); ++i) slowest.emplace(loads[i][places[i]], i);
  while (idle > 0 && !slowest.empty()) {
    const auto [time, i] = slowest.top();
    slowest.pop();
    const std::size_t next = next_place(loads[i], places[i]);
    if (next == sizes_.size() || loads[i][next] > time) continue;
    const std::int32_t more = sizes_[next] - sizes_[places[i]];
    if (more > idle) continue;
    idle -= more;
    places[i] = next;
    slowest.emplace(loads[i][next], i);
  }
  return places;
}

// Of all sizes, from these on, that add up to all ranks, those with the earliest end; empty if none
// do.
RankTiler::Places RankTiler::choose(std::span<const TimesBySize> loads,
                                    const Places& places) const {
  constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
  const auto idle = static_cast<std::size_t>(num_idle(places));
  // By how many ranks the first loads have more than they need: their end, and the last one's size.
  std::vector<Nanoseconds> ends(idle + 1, never);
  ends[0] = 0;
  std::vector<std::vector<std::size_t>> chosen;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    std::vector<Nanoseconds> next(idle + 1, never);
    std::vector<std::size_t>& place_of = chosen.emplace_back(idle + 1, sizes_.size());
    for (std::size_t p = places[i]; p < sizes_.size(); ++p) {
      const auto more = static_cast<std::size_t>(sizes_[p] - sizes_[places[i]]);
      if (more > idle) break;
      const Nanoseconds time = loads[i][p];
      if (time < 0) continue;
      for (std::size_t used = more; used <= idle; ++used) {
        const Nanoseconds end = std::max(ends[used - more], time);
        if (end >= next[used]) continue;
        next[used] = end;
        place_of[used] = p;
      }
    }
    ends = std::move(next);
  }
  if (ends[idle] == never) return {};
  Places result(loads.size());
  std::size_t used = idle;
  for (std::size_t i = loads.size(); i-- > 0;) {
    result[i] = chosen[i][used];
    used -= static_cast<std::size_t>(sizes_[result[i]] - sizes_[places[i]]);
  }
  return result;
}

std::vector<RankRange> RankTiler::ranges(const Places& places) const {
  std::vector<std::int32_t> sizes;
  for (const std::size_t place : places) sizes.push_back(sizes_[place]);
  const std::vector<std::int32_t> firsts = slot_places_.find(sizes);
  std::vector<RankRange> ranges;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    ranges.push_back({.first = firsts[i], .size = sizes[i]});
  }
  return ranges;
}

std::vector<RankRange> RankTiler::find(std::span<const TimesBySize> loads) const {
  const auto num_ranks = static_cast<std::size_t>(problem_.num_ranks());
  if (loads.empty() || loads.size() > num_ranks) return {};
  const Places places = smallest(loads);
  if (places.empty() || num_idle(places) < 0) return {};
  const Places wide = widen(loads, places);
  if (num_idle(wide) == 0) {
    std::vector<RankRange> found = ranges(wide);
    if (!found.empty()) return found;
  }
  const Places chosen = choose(loads, places);
  if (chosen.empty()) return {};
  if (std::vector<RankRange> found = ranges(chosen); !found.empty()) return found;
  // Sizes that do not nest may not stand side by side although they add up.
  std::vector<TimesBySize> nested(loads.begin(), loads.end());
  for (TimesBySize& load : nested) {
    for (std::size_t p = 0; p < sizes_.size(); ++p) {
      const auto size = static_cast<std::uint32_t>(sizes_[p]);
      if (!std::has_single_bit(size) && size != num_ranks) load[p] = -1;
    }
  }
  const Places powers = smallest(nested);
  if (powers.empty() || num_idle(powers) < 0) return {};
  const Places last = choose(nested, powers);
  return last.empty() ? std::vector<RankRange>{} : ranges(last);
}

}  // namespace isochron
