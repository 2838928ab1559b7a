// Micro-batches of a chosen length, sorted into slots.
//
// For a duration D every item takes the smallest group that runs it within D, dearest first, and
// joins the open group that it fills best before it opens one: bin packing with two resources, time
// and tokens, where a group of c ranks is a bin of price c. Groups sorted by duration then fill slot
// after slot, so that those that wait for each other take equally long. The best D of a grid is the
// start; after that a few slots at a time are pooled and packed anew.

#include "isochron/plan/slot_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "isochron/balance/assignment.h"
#include "isochron/core/random.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

struct Group {
  std::int32_t place = 0;  // of its size in sizes()
  std::int32_t size = 1;
  Nanoseconds time = 0;    // with the fixed part
  Tokens tokens = 0;
  std::int32_t num_sequences = 0;
  std::vector<ItemId> items = {};
};

struct PackedSlot {
  std::vector<Group> groups = {};
  Nanoseconds time = 0;
  Nanoseconds room = 0;  // that groups may fill
};

class SlotSearch {
 public:
  SlotSearch(const Problem& problem, Nanoseconds bound) : problem_(problem), bound_(bound) {
    const auto sizes = problem.sizes();
    for (const std::int32_t size : sizes) prices_.push_back(problem.cheapest_price(size));
    const auto count = static_cast<std::size_t>(problem.num_items());
    smallest_.resize(count);
    dearest_.resize(count);
    std::iota(dearest_.begin(), dearest_.end(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      while (!problem.item_fits(sizes[static_cast<std::size_t>(smallest_[i])],
                                static_cast<ItemId>(i))) {
        ++smallest_[i];
      }
      total_area_ += static_cast<double>(cost(static_cast<std::size_t>(smallest_[i]), static_cast<ItemId>(i))) *
                     sizes[static_cast<std::size_t>(smallest_[i])];
      total_tokens_ += static_cast<double>(problem.tokens(sizes[static_cast<std::size_t>(smallest_[i])], static_cast<ItemId>(i)));
    }
    std::sort(dearest_.begin(), dearest_.end(), [&](ItemId a, ItemId b) {
      return std::pair(-cost(0, a), a) < std::pair(-cost(0, b), b);
    });
    position_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      position_[static_cast<std::size_t>(dearest_[i])] = static_cast<std::int32_t>(i);
    }
  }

  SlotDraft within(Nanoseconds limit) {
    std::int64_t work = 0;
    consider(build(dearest_, limit, Idle::spread, work));
    return draft();
  }

  SlotDraft run(std::int64_t work) {
    const std::int64_t all_work = work;
    start(work);
    improve(work, all_work);
    return draft();
  }

 private:
  Nanoseconds cost(std::size_t place, ItemId item) const {
    return problem_.cost(prices_[place], item);  // items are bundles here
  }
  Nanoseconds fixed(std::size_t place) const { return problem_.price(prices_[place]).fixed; }
  Nanoseconds good_enough() const { return bound_ + (bound_ >> 13); }

  // Packs items, dearest first, into groups that take at most `limit` where they can.
  std::vector<Group> pack(const std::vector<ItemId>& items, Nanoseconds limit,
                          std::int64_t& work) const {
    const auto sizes = problem_.sizes();
    const std::int32_t max_sequences = problem_.options().max_sequences;
    std::vector<Group> groups;
    using Open = std::set<std::pair<Nanoseconds, std::int32_t>>;  // time left, group
    std::vector<Open> open(sizes.size());
    constexpr int max_tries = 12;
    for (const ItemId item : items) {
      --work;
      std::size_t place = static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]);
      std::size_t best = place;
      Nanoseconds least = never;
      bool is_late = true;
      for (; place < sizes.size(); ++place) {
        if (!problem_.item_fits(sizes[place], item)) continue;
        const Nanoseconds time = cost(place, item) + fixed(place);
        if (time < least) {
          least = time;
          best = place;
        }
        if (time <= limit) {
          is_late = false;
          break;
        }
      }
      const Tokens alone_tokens = problem_.tokens(sizes[best], item);
      const std::int32_t sequences = problem_.num_sequences(item);
      const bool is_alone = problem_.is_alone(item);
      std::int32_t joined = -1;
      if (!is_late && !is_alone) {
        for (std::size_t p = best; p < sizes.size() && joined < 0; ++p) {
          if (open[p].empty()) continue;
          const Nanoseconds time = cost(p, item);
          const Tokens tokens = problem_.tokens(sizes[p], item);
          int tries = 0;
          for (auto it = open[p].lower_bound({time, -1}); it != open[p].end() && tries < max_tries;
               ++it, ++tries) {
            Group& group = groups[static_cast<std::size_t>(it->second)];
            if (group.tokens + tokens > problem_.capacity() * sizes[p]) continue;
            if (max_sequences > 0 && group.num_sequences + sequences > max_sequences) continue;
            joined = it->second;
            open[p].erase(it);
            group.items.push_back(item);
            group.time += time;
            group.tokens += tokens;
            group.num_sequences += sequences;
            open[p].emplace(limit - group.time, joined);
            break;
          }
        }
      }
      if (joined >= 0) continue;
      groups.push_back({.place = static_cast<std::int32_t>(best),
                        .size = sizes[best],
                        .time = cost(best, item) + fixed(best),
                        .tokens = alone_tokens,
                        .num_sequences = sequences,
                        .items = {item}});
      if (!is_late && !is_alone) {
        open[best].emplace(limit - groups.back().time, static_cast<std::int32_t>(groups.size()) - 1);
      }
    }
    return groups;
  }

  // Longest groups first into slots: each takes the longest one left and fills up with the next.
  std::vector<PackedSlot> arrange(std::vector<Group> groups) const {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.time > b.time; });
    std::vector<PackedSlot> slots;
    std::vector<std::int32_t> rest(groups.size());
    std::iota(rest.begin(), rest.end(), 0);
    while (!rest.empty()) {
      PackedSlot slot;
      std::int32_t room = problem_.num_ranks();
      std::vector<std::int32_t> later;
      for (const std::int32_t index : rest) {
        Group& group = groups[static_cast<std::size_t>(index)];
        if (group.size > room || (!is_simple() && !can_place(slot.groups, group))) {
          later.push_back(index);
          continue;
        }
        room -= group.size;
        slot.time = std::max(slot.time, group.time);
        slot.groups.push_back(std::move(group));
      }
      rest = std::move(later);
      slots.push_back(std::move(slot));
    }
    return slots;
  }

  // Whether groups fit side by side as soon as their sizes add up.
  bool is_simple() const {
    if (!problem_.is_everywhere()) return false;
    if (!problem_.is_aligned() || problem_.sizes().size() == 1) return true;
    const auto sizes = problem_.sizes();
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      if (sizes[i] % sizes[i - 1] != 0) return false;
    }
    return problem_.num_ranks() % sizes.back() == 0;
  }

  bool can_place(const std::vector<Group>& groups, const Group& more) const {
    std::vector<std::int32_t> sizes;
    for (const Group& group : groups) sizes.push_back(group.size);
    sizes.push_back(more.size);
    return !places_of(sizes).empty();
  }

  // First ranks for groups of these sizes, or nothing if they do not fit: widest first, each at its
  // first free place, inside a node if it can.
  std::vector<std::int32_t> places_of(const std::vector<std::int32_t>& sizes) const {
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
    std::vector<bool> is_taken(static_cast<std::size_t>(problem_.num_ranks()), false);
    std::vector<std::int32_t> places(sizes.size(), -1);
    for (const std::size_t i : order) {
      const std::int32_t size = sizes[i];
      const std::int32_t step = problem_.first_step(size);
      std::int32_t best = -1;
      Nanoseconds best_fixed = never;
      for (std::int32_t first = 0; first + size <= problem_.num_ranks(); first += step) {
        bool is_free = true;
        for (std::int32_t r = first; r < first + size && is_free; ++r) {
          is_free = !is_taken[static_cast<std::size_t>(r)];
        }
        if (!is_free) continue;
        const PriceId price = problem_.price_of({.first = first, .size = size});
        if (price < 0) continue;
        // The fixed part tells the link; the first place with the cheapest one.
        if (problem_.price(price).fixed < best_fixed) {
          best = first;
          best_fixed = problem_.price(price).fixed;
        }
        if (best_fixed == problem_.price(problem_.cheapest_price(size)).fixed) break;
      }
      if (best < 0) return places_in_row(sizes, order);
      places[i] = best;
      for (std::int32_t r = best; r < best + size; ++r) is_taken[static_cast<std::size_t>(r)] = true;
    }
    return places;
  }

  // Slots for items, dearest first. What needs a wide group to end within the limit goes first; the
  // rest fills what that leaves open, and what is left then is spread evenly over further slots.
  enum class Idle { filled, spread };  // what to do with ranks beside the wide groups

  std::vector<PackedSlot> build(const std::vector<ItemId>& items, Nanoseconds limit, Idle idle,
                                std::int64_t& work) const {
    std::vector<ItemId> wide;
    std::vector<ItemId> narrow;
    for (const ItemId item : items) {
      const bool is_wide = smallest_[static_cast<std::size_t>(item)] > 0 ||
                           problem_.is_alone(item) || cost(0, item) + fixed(0) > limit;
      (is_wide ? wide : narrow).push_back(item);
    }
    std::vector<PackedSlot> slots = arrange(pack(wide, limit, work));
    for (PackedSlot& slot : slots) slot.room = idle == Idle::filled ? slot.time : std::max(slot.time, limit);
    narrow = fill(slots, narrow, idle, work);
    if (!narrow.empty()) spread(slots, idle, narrow, work);
    return slots;
  }

  // Puts items where groups end before their slot and on ranks that idle; returns those that are
  // left.
  std::vector<ItemId> fill(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
                           Idle idle_ranks, std::int64_t& work) const {
    const auto sizes = problem_.sizes();
    const std::int32_t max_sequences = problem_.options().max_sequences;
    struct Where {
      std::size_t slot;
      std::size_t group;
    };
    std::vector<Where> where;
    using Open = std::set<std::pair<Nanoseconds, std::int32_t>>;  // time left, place in `where`
    std::vector<Open> open(sizes.size());
    for (std::size_t s = 0; s < slots.size(); ++s) {
      std::int32_t idle = problem_.num_ranks();
      for (const Group& group : slots[s].groups) idle -= group.size;
      while (idle_ranks == Idle::filled && idle >= sizes.front() && is_simple()) {
        idle -= sizes.front();
        slots[s].groups.push_back({.place = 0, .size = sizes.front(), .time = fixed(0)});
      }
      for (std::size_t g = 0; g < slots[s].groups.size(); ++g) {
        const Group& group = slots[s].groups[g];
        if (!group.items.empty() && problem_.is_alone(group.items.front())) continue;
        where.push_back({s, g});
        open[static_cast<std::size_t>(group.place)].emplace(
            slots[s].room - group.time, static_cast<std::int32_t>(where.size()) - 1);
      }
    }
    constexpr int max_tries = 12;
    std::vector<ItemId> rest;
    for (const ItemId item : items) {
      --work;
      const std::int32_t sequences = problem_.num_sequences(item);
      bool is_placed = false;
      for (auto p = static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]);
           p < sizes.size() && !is_placed; ++p) {
        if (open[p].empty()) continue;
        const Nanoseconds time = cost(p, item);
        if (open[p].rbegin()->first < time) continue;
        const Tokens tokens = problem_.tokens(sizes[p], item);
        int tries = 0;
        for (auto it = open[p].lower_bound({time, -1}); it != open[p].end() && tries < max_tries;
             ++it, ++tries) {
          const Where spot = where[static_cast<std::size_t>(it->second)];
          Group& group = slots[spot.slot].groups[spot.group];
          if (group.tokens + tokens > problem_.capacity() * sizes[p]) continue;
          if (max_sequences > 0 && group.num_sequences + sequences > max_sequences) continue;
          const auto entry = *it;
          open[p].erase(it);
          group.items.push_back(item);
          group.time += time;
          group.tokens += tokens;
          group.num_sequences += sequences;
          slots[spot.slot].time = std::max(slots[spot.slot].time, group.time);
          open[p].emplace(entry.first - time, entry.second);
          is_placed = true;
          break;
        }
      }
      if (!is_placed) rest.push_back(item);
    }
    for (PackedSlot& slot : slots) {
      std::erase_if(slot.groups, [](const Group& group) { return group.items.empty(); });
    }
    return rest;
  }

  // Adds items that run on smallest groups, evenly over the cells that idle (if they are not filled
  // already) and as many further slots as hold their tokens, or a few more where that is shorter.
  void spread(std::vector<PackedSlot>& slots, Idle idle, const std::vector<ItemId>& items,
              std::int64_t& work) const {
    const std::int32_t size = problem_.sizes().front();
    const std::int32_t cells = problem_.num_ranks() / size;
    std::vector<Nanoseconds> costs;
    std::vector<Tokens> tokens;
    std::vector<std::int32_t> sequences;
    Tokens volume = 0;
    for (const ItemId item : items) {
      costs.push_back(cost(0, item));
      tokens.push_back(problem_.tokens(size, item));
      sequences.push_back(problem_.num_sequences(item));
      volume += tokens.back();
    }
    std::vector<std::size_t> beside;  // the slot of each idle cell, longest slot first
    if (idle == Idle::spread && is_simple()) {
      for (std::size_t s = 0; s < slots.size(); ++s) {
        std::int32_t room = problem_.num_ranks();
        for (const Group& group : slots[s].groups) room -= group.size;
        for (; room >= size; room -= size) beside.push_back(s);
      }
      std::stable_sort(beside.begin(), beside.end(), [&](std::size_t a, std::size_t b) {
        return slots[a].time > slots[b].time;
      });
    }
    const auto num_beside = static_cast<std::int32_t>(beside.size());
    Limits limits{.capacity = problem_.capacity() * size};
    if (problem_.options().max_sequences > 0) limits.max_size = problem_.options().max_sequences;
    const auto num_bins = static_cast<std::int32_t>((volume + limits.capacity - 1) / limits.capacity);
    const std::int32_t fewest =
        std::max(num_beside > 0 ? 0 : 1, (num_bins - num_beside + cells - 1) / cells);
    std::vector<PackedSlot> best;
    Nanoseconds best_time = never;
    for (std::int32_t m = fewest; m < fewest + 3; ++m) {
      const std::int32_t bins = num_beside + m * cells;
      const std::int64_t budget = static_cast<std::int64_t>(items.size()) * 16;
      const Assignment assignment = assign({.costs = costs, .tokens = tokens, .sizes = sequences},
                                           bins, limits, RefineGoal::largest, budget);
      work -= budget / 4;
      if (!assignment.bin_of) continue;
      std::vector<Group> groups(static_cast<std::size_t>(bins));
      for (Group& group : groups) {
        group.size = size;
        group.time = fixed(0);
      }
      for (std::size_t i = 0; i < items.size(); ++i) {
        Group& group = groups[static_cast<std::size_t>((*assignment.bin_of)[i])];
        group.items.push_back(items[i]);
        group.time += costs[i];
        group.tokens += tokens[i];
        group.num_sequences += sequences[i];
      }
      std::erase_if(groups, [](const Group& group) { return group.items.empty(); });
      std::stable_sort(groups.begin(), groups.end(),
                       [](const Group& a, const Group& b) { return a.time > b.time; });
      // Idle cells first where their slot is long anyway, fresh slots for the rest.
      std::vector<PackedSlot> all = slots;
      std::size_t next = 0;
      for (const std::size_t s : beside) {
        if (next == groups.size()) break;
        all[s].time = std::max(all[s].time, groups[next].time);
        all[s].groups.push_back(std::move(groups[next++]));
      }
      groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(next));
      for (PackedSlot& slot : arrange(std::move(groups))) all.push_back(std::move(slot));
      const Nanoseconds time = total(all);
      if (time < best_time) {
        best_time = time;
        best = std::move(all);
      }
    }
    if (best_time == never) {
      for (PackedSlot& slot : arrange(pack(items, never, work))) slots.push_back(std::move(slot));
      return;
    }
    slots = std::move(best);
  }

  // One after the other, in this order: fits where groups may start anywhere.
  std::vector<std::int32_t> places_in_row(const std::vector<std::int32_t>& sizes,
                                          const std::vector<std::size_t>& order) const {
    std::vector<std::int32_t> places(sizes.size(), -1);
    std::int32_t next = 0;
    for (const std::size_t i : order) {
      const RankRange ranks{.first = next, .size = sizes[i]};
      const bool is_allowed = next + sizes[i] <= problem_.num_ranks() &&
                              next % problem_.first_step(sizes[i]) == 0 &&
                              problem_.price_of(ranks) >= 0;
      if (!is_allowed) return {};
      places[i] = next;
      next += sizes[i];
    }
    return places;
  }

  static Nanoseconds total(const std::vector<PackedSlot>& slots) {
    Nanoseconds sum = 0;
    for (const PackedSlot& slot : slots) sum += slot.time;
    return sum;
  }

  void consider(std::vector<PackedSlot> slots) {
    const Nanoseconds time = total(slots);
    if (time < time_) {
      time_ = time;
      slots_ = std::move(slots);
    }
  }

  // Slots for limits from no limit at all down to what a slot full of tokens takes.
  void start(std::int64_t& work) {
    const double full = total_area_ * static_cast<double>(problem_.capacity()) /
                        std::max(1.0, total_tokens_);
    const double whole = total_area_ / problem_.num_ranks();
    Nanoseconds longest = 0;
    for (const ItemId item : dearest_) {
      const auto place = static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]);
      longest = std::max(longest, cost(place, item) + fixed(place));
    }
    std::vector<std::pair<double, Idle>> limits;
    for (const double factor : {8.0, 2.5, 2.2, 2.0, 1.8, 1.5, 1.2}) {
      limits.emplace_back(std::min(full, whole) * factor, Idle::filled);
    }
    const auto fewest = std::max(1.0, std::ceil(whole / full));
    for (double m = fewest; m < fewest + 5; ++m) {
      limits.emplace_back(whole / m * 1.005, Idle::spread);
      limits.emplace_back(whole / m * 1.05, Idle::spread);
    }
    Nanoseconds previous = never;
    for (const auto& [limit, idle] : limits) {
      const Nanoseconds clamped = std::clamp<Nanoseconds>(
          static_cast<Nanoseconds>(limit) + problem_.microbatch(), 1, longest);
      if (clamped == previous && idle == Idle::filled) continue;
      previous = clamped;
      auto sl = build(dearest_, clamped, idle, work);
      if (getenv("VV")) fprintf(stderr, "    D/full %.3f %d slots %zu total %.4f\n", limit/full, (int)idle, sl.size(), (double)total(sl)/(double)bound_);
      consider(std::move(sl));
      if (time_ <= good_enough()) return;
    }
  }

  // Pools a few slots, packs them anew for a random duration, keeps what is not longer.
  void improve(std::int64_t& work, std::int64_t all_work) {
    (void)all_work;
    Random random(1);
    while (work > 0 && time_ > good_enough() && slots_.size() >= 1) {
      const auto count = static_cast<std::uint64_t>(slots_.size());
      const std::size_t pool = std::min<std::size_t>(slots_.size(), 2 + random.below(2));
      std::vector<std::size_t> chosen;
      while (chosen.size() < pool) {
        const auto index = static_cast<std::size_t>(random.below(count));
        if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
      }
      std::vector<ItemId> items;
      Nanoseconds before = 0;
      for (const std::size_t index : chosen) {
        before += slots_[index].time;
        for (const Group& group : slots_[index].groups) {
          items.insert(items.end(), group.items.begin(), group.items.end());
        }
      }
      std::sort(items.begin(), items.end(), [&](ItemId a, ItemId b) {
        return position_[static_cast<std::size_t>(a)] < position_[static_cast<std::size_t>(b)];
      });
      const double mean = static_cast<double>(before) / static_cast<double>(pool);
      const auto limit = static_cast<Nanoseconds>(mean * (0.8 + 0.3 * random.unit()));
      std::vector<PackedSlot> fresh = build(items, std::max<Nanoseconds>(1, limit), random.below(2) == 0 ? Idle::filled : Idle::spread, work);
      work -= static_cast<std::int64_t>(items.size());
      const Nanoseconds after = total(fresh);
      if (after > before) continue;
      std::sort(chosen.begin(), chosen.end(), std::greater<>());
      for (const std::size_t index : chosen) {
        slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(index));
      }
      for (PackedSlot& slot : fresh) slots_.push_back(std::move(slot));
      time_ += after - before;
    }
  }

  SlotDraft draft() const {
    SlotDraft draft;
    for (const PackedSlot& slot : slots_) {
      std::vector<std::int32_t> sizes;
      for (const Group& group : slot.groups) sizes.push_back(group.size);
      const std::vector<std::int32_t> places = places_of(sizes);
      std::vector<DraftGroup>& groups = draft.slots.emplace_back();
      Nanoseconds slowest = 0;
      for (std::size_t i = 0; i < places.size(); ++i) {
        const RankRange ranks{.first = places[i], .size = sizes[i]};
        const PriceId price = problem_.price_of(ranks);
        Nanoseconds time = problem_.price(price).fixed;
        for (const ItemId item : slot.groups[i].items) time += problem_.item_cost(price, item);
        slowest = std::max(slowest, Problem::slowed(time, problem_.slowness(ranks)));
        groups.push_back({.ranks = ranks, .items = slot.groups[i].items});
      }
      draft.time += slowest;
    }
    return draft;
  }

  const Problem& problem_;
  Nanoseconds bound_;
  std::vector<PriceId> prices_;         // of each size, at its cheapest place
  std::vector<std::int32_t> smallest_;  // place in sizes() of the smallest that holds an item
  std::vector<ItemId> dearest_;
  std::vector<std::int32_t> position_;  // of each item in dearest_
  double total_area_ = 0;
  double total_tokens_ = 0;
  std::vector<PackedSlot> slots_;
  Nanoseconds time_ = never;
};

}  // namespace

SlotDraft pack_slots(const Problem& problem, Nanoseconds limit) {
  return SlotSearch(problem, 0).within(limit);
}

SlotDraft search_slots(const Problem& problem, Nanoseconds bound, std::int64_t work) {
  return SlotSearch(problem, bound).run(work);
}

}  // namespace isochron
