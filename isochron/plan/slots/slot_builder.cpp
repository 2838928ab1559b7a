// Micro-batches of a chosen length, sorted into slots.
//
// What needs a wide group to end within a limit is packed first, dearest first: bin packing with
// two resources, time and tokens, where a group of c ranks is a bin of price c. Sorted by duration
// these groups fill slot after slot, so that those that wait for each other take equally long. The
// other items fill what the wide groups leave open, and the rest is spread evenly over further
// slots.

#include "isochron/plan/slots/slot_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "isochron/balance/assignment.h"
#include "isochron/plan/slots/open_groups.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

using Idle = SlotRecipe::Idle;

}  // namespace

SlotBuilder::SlotBuilder(const SlotItems& items, const SlotPlaces& places)
    : items_(items), problem_(items.problem()), places_(places) {}

std::vector<PackedSlot> SlotBuilder::build(const std::vector<ItemId>& items,
                                           const SlotRecipe& recipe, std::int64_t& work) const {
  std::vector<ItemId> wide;
  std::vector<ItemId> narrow;
  for (const ItemId item : items) {
    const bool is_wide = items_.smallest_from(recipe.base, item) > recipe.base ||
                         problem_.is_alone(item) ||
                         items_.cost(recipe.base, item) + items_.fixed(recipe.base) > recipe.limit;
    (is_wide ? wide : narrow).push_back(item);
  }
  std::vector<PackedSlot> slots = arrange(pack(wide, recipe, work));
  for (PackedSlot& slot : slots) {
    slot.room = recipe.idle == Idle::filled ? slot.time : std::max(slot.time, recipe.limit);
  }
  if (least_time(slots, narrow) > static_cast<double>(recipe.most)) return {};
  narrow = fill(slots, narrow, recipe, work);
  if (narrow.empty()) return slots;
  if (recipe.idle == Idle::filled && least_time(slots, narrow) > static_cast<double>(recipe.most)) {
    return {};
  }
  std::vector<PackedSlot> apart;
  if (!recipe.is_last) apart = with_rest_apart(slots, narrow, recipe, work);
  spread(slots, narrow, recipe, work);
  return !apart.empty() && total_time(apart) < total_time(slots) ? apart : slots;
}

// What slots take together with items that fill all time that they leave, and then more.
double SlotBuilder::least_time(const std::vector<PackedSlot>& slots,
                               const std::vector<ItemId>& items) const {
  const double ranks = problem_.num_ranks();
  double time = 0;
  double rest = 0;  // area
  for (const PackedSlot& slot : slots) {
    time += static_cast<double>(slot.time);
    rest -= ranks * static_cast<double>(slot.time);
    for (const PackedGroup& group : slot.groups) {
      rest += static_cast<double>(group.time) * group.size;
    }
  }
  for (const ItemId item : items) rest += items_.least_area(item);
  return time + std::max(0.0, rest / ranks);
}

// Packs items, dearest first, into groups that take at most the limit where they can.
std::vector<PackedGroup> SlotBuilder::pack(const std::vector<ItemId>& items,
                                           const SlotRecipe& recipe, std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  std::vector<PackedGroup> groups;
  OpenGroups open(items_);
  for (const ItemId item : items) {
    --work;
    const std::size_t best = items_.smallest_within(recipe.base, recipe.limit, item);
    const bool may_share =
        items_.cost(best, item) + items_.fixed(best) <= recipe.limit && !problem_.is_alone(item);
    std::int32_t id = -1;
    for (std::size_t place = best; may_share && place < sizes.size() && id < 0; ++place) {
      if (!open.has_any(place)) continue;
      if (items_.overhead(place, item) > 1.1 * items_.overhead(best, item)) break;
      if (!problem_.item_fits(sizes[place], item)) continue;
      id = open.take(
          place, item,
          [&](std::int32_t g) -> const PackedGroup& { return groups[static_cast<std::size_t>(g)]; },
          [&](std::int32_t g) { return recipe.limit - groups[static_cast<std::size_t>(g)].time; });
    }
    if (id < 0) {
      id = static_cast<std::int32_t>(groups.size());
      groups.push_back(items_.group_at(best));
    }
    PackedGroup& group = groups[static_cast<std::size_t>(id)];
    items_.put(group, item);
    if (may_share) open.add(group, recipe.limit - group.time, id);
  }
  return groups;
}

// Longest groups first into slots: each takes the longest one left and fills up with the next.
std::vector<PackedSlot> SlotBuilder::arrange(std::vector<PackedGroup> groups) const {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const PackedGroup& a, const PackedGroup& b) { return a.time > b.time; });
  std::vector<PackedSlot> slots;
  std::vector<std::int32_t> rest(groups.size());
  std::iota(rest.begin(), rest.end(), 0);
  while (!rest.empty()) {
    PackedSlot slot;
    SlotRoom room(places_, problem_.num_ranks());
    std::vector<std::int32_t> later;
    for (const std::int32_t index : rest) {
      PackedGroup& group = groups[static_cast<std::size_t>(index)];
      if (!room.take(group.size)) {
        later.push_back(index);
        continue;
      }
      slot.time = std::max(slot.time, group.time);
      slot.groups.push_back(std::move(group));
    }
    rest = std::move(later);
    slots.push_back(std::move(slot));
  }
  return slots;
}

Nanoseconds SlotBuilder::even_share(const std::vector<ItemId>& items, std::size_t base) const {
  double sum = 0;
  Tokens tokens = 0;
  for (const ItemId item : items) {
    sum += static_cast<double>(items_.cost(base, item));
    tokens += items_.tokens(base, item);
  }
  const Tokens room = problem_.capacity() * problem_.num_ranks();
  const Tokens slots = (tokens + room - 1) / room;
  return static_cast<Nanoseconds>(sum * problem_.sizes()[base] / problem_.num_ranks() /
                                  static_cast<double>(slots));
}

// Adds slots for what is left in which even its dearest items end with the others, on wider
// groups than they need. Nothing if none is that dear.
std::vector<PackedSlot> SlotBuilder::with_rest_apart(const std::vector<PackedSlot>& slots,
                                                     const std::vector<ItemId>& items,
                                                     const SlotRecipe& recipe,
                                                     std::int64_t& work) const {
  double sum = 0;
  Tokens tokens = 0;
  for (const ItemId item : items) {
    sum += static_cast<double>(items_.cost(recipe.base, item));
    tokens += items_.tokens(recipe.base, item);
  }
  const double mean = sum * problem_.sizes()[recipe.base] / problem_.num_ranks();
  const Tokens room = problem_.capacity() * problem_.num_ranks();
  const Tokens fewest = (tokens + room - 1) / room;
  std::vector<PackedSlot> best;
  Nanoseconds best_time = never;
  for (Tokens m = fewest; m < fewest + 2; ++m) {
    const auto limit =
        static_cast<Nanoseconds>(mean / static_cast<double>(m) * 1.01) + items_.fixed(recipe.base);
    if (items_.cost(recipe.base, items.front()) + items_.fixed(recipe.base) <= limit) continue;
    std::vector<PackedSlot> all = slots;
    const SlotRecipe even{.base = recipe.base,
                          .limit = limit,
                          .idle = Idle::spread,
                          .is_quick = recipe.is_quick,
                          .is_last = true};
    for (PackedSlot& slot : build(items, even, work)) all.push_back(std::move(slot));
    if (total_time(all) < best_time) {
      best_time = total_time(all);
      best = std::move(all);
    }
  }
  return best;
}

// Puts items where groups end before their slot and on ranks that idle; returns those that are
// left.
std::vector<ItemId> SlotBuilder::fill(std::vector<PackedSlot>& slots,
                                      const std::vector<ItemId>& items, const SlotRecipe& recipe,
                                      std::int64_t& work) const {
  if (slots.empty()) return items;
  const auto sizes = problem_.sizes();
  struct Where {
    std::size_t slot;
    std::size_t group;
  };
  std::vector<Where> where;
  OpenGroups open(items_);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (recipe.idle == Idle::filled) {
      const std::int32_t idle = places_.num_beside(slots[s], sizes[recipe.base]);
      slots[s].groups.resize(slots[s].groups.size() + static_cast<std::size_t>(idle),
                             items_.group_at(recipe.base));
    }
    for (std::size_t g = 0; g < slots[s].groups.size(); ++g) {
      const PackedGroup& group = slots[s].groups[g];
      if (!group.items.empty() && problem_.is_alone(group.items.front())) continue;
      where.push_back({s, g});
      open.add(group, slots[s].room - group.time, static_cast<std::int32_t>(where.size()) - 1);
    }
  }
  const auto group_of = [&](std::int32_t id) -> PackedGroup& {
    const Where& spot = where[static_cast<std::size_t>(id)];
    return slots[spot.slot].groups[spot.group];
  };
  const auto time_left_of = [&](std::int32_t id) {
    return slots[where[static_cast<std::size_t>(id)].slot].room - group_of(id).time;
  };
  // Where traffic is cheap first; idle time on wide groups is better used dearly than not at all.
  // Groups that have no room for an item have none later.
  struct Left {
    ItemId item;
    std::size_t next;  // of the places, to be tried
  };
  const std::vector<std::size_t> places = open.places();
  std::vector<Left> rest;
  rest.reserve(items.size());
  for (const ItemId item : items) {
    const auto first =
        std::lower_bound(places.begin(), places.end(), items_.smallest_from(recipe.base, item));
    rest.push_back({item, static_cast<std::size_t>(first - places.begin())});
  }
  for (const double most : {1.05, 1.2, 4.0}) {
    std::size_t kept = 0;
    for (auto [item, next] : rest) {
      --work;
      std::int32_t id = -1;
      for (; id < 0 && next < places.size(); ++next) {
        const std::size_t place = places[next];
        if (items_.overhead(place, item) > most) break;
        if (open.may_take(place, item) && problem_.item_fits(sizes[place], item)) {
          id = open.take(place, item, group_of, time_left_of);
        }
      }
      if (id < 0) {
        rest[kept++] = {item, next};
        continue;
      }
      PackedGroup& group = group_of(id);
      items_.put(group, item);
      PackedSlot& slot = slots[where[static_cast<std::size_t>(id)].slot];
      slot.time = std::max(slot.time, group.time);
      open.add(group, slot.room - group.time, id);
    }
    rest.resize(kept);
  }
  for (PackedSlot& slot : slots) {
    std::erase_if(slot.groups, [](const PackedGroup& group) { return group.items.empty(); });
  }
  std::vector<ItemId> left;
  left.reserve(rest.size());
  for (const Left& each : rest) left.push_back(each.item);
  return left;
}

// Adds items that need no wide group, evenly over the cells that idle (if they are not filled
// already) and as many further slots as hold their tokens, or a few more where that is shorter.
void SlotBuilder::spread(std::vector<PackedSlot>& slots, const std::vector<ItemId>& items,
                         const SlotRecipe& recipe, std::int64_t& work) const {
  const std::int32_t size = problem_.sizes()[recipe.base];
  const std::int32_t cells = problem_.num_ranks() / size;
  std::vector<Nanoseconds> costs;
  std::vector<Tokens> tokens;
  std::vector<std::int32_t> sequences;
  costs.reserve(items.size());
  tokens.reserve(items.size());
  sequences.reserve(items.size());
  Tokens volume = 0;
  for (const ItemId item : items) {
    const SlotItems::Known& known = items_.known(recipe.base, item);
    costs.push_back(known.cost);
    tokens.push_back(known.tokens);
    sequences.push_back(problem_.num_sequences(item));
    volume += tokens.back();
  }
  std::vector<std::size_t> beside;  // the slot of each idle cell, longest slot first
  if (recipe.idle == Idle::spread) {
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const std::int32_t idle = places_.num_beside(slots[s], size);
      beside.insert(beside.end(), static_cast<std::size_t>(idle), s);
    }
    std::stable_sort(beside.begin(), beside.end(),
                     [&](std::size_t a, std::size_t b) { return slots[a].time > slots[b].time; });
  }
  const auto num_beside = static_cast<std::int32_t>(beside.size());
  Limits limits{.capacity = problem_.capacity() * size};
  if (problem_.options().max_sequences > 0) limits.max_size = problem_.options().max_sequences;
  auto num_bins = static_cast<std::int32_t>((volume + limits.capacity - 1) / limits.capacity);
  if (const std::int32_t most = problem_.options().max_sequences; most > 0) {
    const std::int32_t count = std::accumulate(sequences.begin(), sequences.end(), 0);
    num_bins = std::max(num_bins, (count + most - 1) / most);
  }
  const std::int32_t fewest =
      std::max(num_beside > 0 ? 0 : 1, (num_bins - num_beside + cells - 1) / cells);
  std::vector<PackedSlot> best;
  Nanoseconds best_time = never;
  const Units units{.costs = costs, .tokens = tokens, .sizes = sequences};
  // What all of it takes at least, without the fixed part of further slots.
  double least = static_cast<double>(total_time(slots));
  double rest = static_cast<double>(std::accumulate(costs.begin(), costs.end(), Nanoseconds{0}));
  for (const std::size_t s : beside) {
    rest -=
        static_cast<double>(std::max<Nanoseconds>(0, slots[s].time - items_.fixed(recipe.base)));
  }
  least += std::max(0.0, rest * size / problem_.num_ranks());
  for (std::int32_t m = fewest; m < fewest + (recipe.is_quick ? 2 : 3); ++m) {
    if (recipe.is_quick && best_time != never) break;
    const double shortest = least + static_cast<double>(m * items_.fixed(recipe.base));
    if (static_cast<double>(best_time) <= shortest * (1 + 0x1p-13)) break;
    const std::int32_t bins = num_beside + m * cells;
    std::optional<BinOf> bin_of;
    if (recipe.is_quick) {
      bin_of = longest_first(units, dearest_first(costs), bins, limits);
      work -= static_cast<std::int64_t>(items.size());
    } else {
      const std::int64_t budget = static_cast<std::int64_t>(items.size()) * 16;
      bin_of = assign(units, bins, limits, RefineGoal::largest, budget).bin_of;
      work -= budget / 4;
    }
    if (!bin_of) continue;
    std::vector<PackedGroup> groups(static_cast<std::size_t>(bins), items_.group_at(recipe.base));
    std::vector<std::size_t> counts(groups.size(), 0);
    for (const std::int32_t bin : *bin_of) ++counts[static_cast<std::size_t>(bin)];
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g].items.reserve(counts[g]);
    for (std::size_t i = 0; i < items.size(); ++i) {
      items_.put(groups[static_cast<std::size_t>((*bin_of)[i])], items[i]);
    }
    std::erase_if(groups, [](const PackedGroup& group) { return group.items.empty(); });
    std::stable_sort(groups.begin(), groups.end(),
                     [](const PackedGroup& a, const PackedGroup& b) { return a.time > b.time; });
    // Idle cells first where their slot is long anyway, further slots for the rest.
    std::vector<PackedSlot> all = slots;
    std::size_t next = 0;
    for (const std::size_t s : beside) {
      if (next == groups.size()) break;
      all[s].time = std::max(all[s].time, groups[next].time);
      all[s].groups.push_back(std::move(groups[next++]));
    }
    groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(next));
    for (PackedSlot& slot : arrange(std::move(groups))) all.push_back(std::move(slot));
    const Nanoseconds time = total_time(all);
    if (time < best_time) {
      best_time = time;
      best = std::move(all);
    }
  }
  if (best_time != never) {
    slots = std::move(best);
    return;
  }
  const SlotRecipe loose{.base = recipe.base, .limit = never};
  for (PackedSlot& slot : arrange(pack(items, loose, work))) slots.push_back(std::move(slot));
}

}  // namespace isochron
