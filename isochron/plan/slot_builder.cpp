// Micro-batches of a chosen length, sorted into slots.
//
// What needs a wide group to end within a limit is packed first, dearest first: bin packing with
// two resources, time and tokens, where a group of c ranks is a bin of price c. Sorted by duration
// these groups fill slot after slot, so that those that wait for each other take equally long. The
// other items fill what the wide groups leave open, and the rest is spread evenly over further
// slots.

#include "isochron/plan/slot_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "isochron/balance/assignment.h"
#include "isochron/plan/slots.h"

namespace isochron {

namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

using Idle = SlotRecipe::Idle;
using Wide = SlotRecipe::Wide;

}  // namespace

Nanoseconds total_time(const std::vector<PackedSlot>& slots) {
  Nanoseconds sum = 0;
  for (const PackedSlot& slot : slots) sum += slot.time;
  return sum;
}

// Groups by the room they have: of the time and of the tokens, at the lightest item's price for
// those, what there is less of.
class SlotBuilder::OpenGroups {
 public:
  explicit OpenGroups(const SlotBuilder& builder)
      : builder_(builder), by_room_(builder.prices_.size()) {}

  void add(const PackedGroup& group, Nanoseconds time_left, std::int32_t id) {
    by_room_[static_cast<std::size_t>(group.place)].emplace(room_of(group, time_left), id);
  }

  bool has_any(std::size_t place) const { return !by_room_[place].empty(); }

  // The group of this size with the least room that takes the item, removed; -1 if there is none.
  template <class GroupOf, class TimeLeftOf>
  std::int32_t take(std::size_t place, ItemId item, GroupOf group_of, TimeLeftOf time_left_of) {
    std::set<std::pair<Nanoseconds, std::int32_t>>& groups = by_room_[place];
    if (groups.empty()) return -1;
    const Problem& problem = builder_.problem_;
    const std::int32_t size = problem.sizes()[place];
    const std::int32_t max_sequences = problem.options().max_sequences;
    const Tokens tokens = problem.tokens(size, item);
    const Nanoseconds time = builder_.cost(place, item);
    const auto needs = std::min(
        time, static_cast<Nanoseconds>(static_cast<double>(tokens) / size * builder_.lightest_));
    if (groups.rbegin()->first < needs) return -1;
    constexpr int max_tries = 16;
    int tries = 0;
    for (auto it = groups.lower_bound({needs, -1}); it != groups.end() && tries < max_tries;
         ++it, ++tries) {
      const PackedGroup& group = group_of(it->second);
      const std::int32_t sequences = problem.num_sequences(item);
      if (time_left_of(it->second) < time || group.tokens + tokens > problem.capacity() * size ||
          (max_sequences > 0 && group.num_sequences + sequences > max_sequences)) {
        continue;
      }
      const std::int32_t id = it->second;
      groups.erase(it);
      return id;
    }
    return -1;
  }

 private:
  Nanoseconds room_of(const PackedGroup& group, Nanoseconds time_left) const {
    const Tokens left = builder_.problem_.capacity() * group.size - group.tokens;
    const double by_tokens = static_cast<double>(left) / group.size * builder_.lightest_;
    return std::min(time_left, static_cast<Nanoseconds>(std::min(by_tokens, 4e18)));
  }

  const SlotBuilder& builder_;
  std::vector<std::set<std::pair<Nanoseconds, std::int32_t>>> by_room_;
};

SlotBuilder::SlotBuilder(const Problem& problem) : problem_(problem), places_(problem) {
  const auto sizes = problem.sizes();
  for (const std::int32_t size : sizes) prices_.push_back(problem.cheapest_price(size));
  const auto count = static_cast<std::size_t>(problem.num_items());
  smallest_.resize(count);
  least_area_.resize(count);
  dearest_.resize(count);
  std::iota(dearest_.begin(), dearest_.end(), 0);
  lightest_ = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const auto item = static_cast<ItemId>(i);
    std::size_t place = 0;
    while (!problem.item_fits(sizes[place], item)) ++place;
    smallest_[i] = static_cast<std::int32_t>(place);
    const double area = static_cast<double>(cost(place, item)) * sizes[place];
    const auto tokens = static_cast<double>(problem.tokens(sizes[place], item));
    least_area_[i] = area;
    total_area_ += area;
    total_tokens_ += tokens;
    lightest_ = std::min(lightest_, area / tokens);
  }
  std::sort(dearest_.begin(), dearest_.end(), [&](ItemId a, ItemId b) {
    return std::pair(-cost(0, a), a) < std::pair(-cost(0, b), b);
  });
  is_alike_ = !problem.has_speeds() && has_one_price(problem);
  position_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    position_[static_cast<std::size_t>(dearest_[i])] = static_cast<std::int32_t>(i);
  }
}

// Place of the smallest size from `base` up that holds the item. What fits a size may not fit the
// next, which pads more.
std::size_t SlotBuilder::smallest_from(std::size_t base, ItemId item) const {
  auto place = std::max(base, static_cast<std::size_t>(smallest_[static_cast<std::size_t>(item)]));
  while (place < prices_.size() && !problem_.item_fits(problem_.sizes()[place], item)) ++place;
  return place;
}

bool SlotBuilder::holds_all(std::size_t base) const {
  return std::all_of(dearest_.begin(), dearest_.end(),
                     [&](ItemId item) { return smallest_from(base, item) < prices_.size(); });
}

void SlotBuilder::put(PackedGroup& group, ItemId item) const {
  group.items.push_back(item);
  group.time += cost(static_cast<std::size_t>(group.place), item);
  group.tokens += problem_.tokens(group.size, item);
  group.num_sequences += problem_.num_sequences(item);
}

PackedGroup SlotBuilder::group_at(std::size_t place) const {
  return {.place = static_cast<std::int32_t>(place),
          .size = problem_.sizes()[place],
          .time = fixed(place)};
}

// What traffic makes of the area of an item, on a larger group than it needs.
double SlotBuilder::overhead(std::size_t place, ItemId item) const {
  if (place == smallest(item)) return 1;
  return static_cast<double>(cost(place, item)) * problem_.sizes()[place] /
         std::max(1.0, least_area_[static_cast<std::size_t>(item)]);
}

// The smallest size that ends within the limit, or else the fastest.
std::size_t SlotBuilder::place_within(const SlotRecipe& recipe, ItemId item) const {
  const auto sizes = problem_.sizes();
  std::size_t best = smallest_from(recipe.base, item);
  Nanoseconds least = never;
  for (std::size_t place = best; place < sizes.size() && least > recipe.limit; ++place) {
    if (!problem_.item_fits(sizes[place], item)) continue;
    const Nanoseconds time = cost(place, item) + fixed(place);
    if (time < least) {
      least = time;
      best = place;
    }
  }
  return best;
}

std::vector<PackedSlot> SlotBuilder::build(const std::vector<ItemId>& items,
                                           const SlotRecipe& recipe, std::int64_t& work) const {
  if (recipe.wide == Wide::in_turn) return build_in_turn(items, recipe, work);
  std::vector<ItemId> wide;
  std::vector<ItemId> narrow;
  for (const ItemId item : items) {
    const bool is_wide = smallest_from(recipe.base, item) > recipe.base ||
                         problem_.is_alone(item) ||
                         cost(recipe.base, item) + fixed(recipe.base) > recipe.limit;
    (is_wide ? wide : narrow).push_back(item);
  }
  std::vector<PackedSlot> slots = arrange(pack(wide, recipe, work));
  for (PackedSlot& slot : slots) {
    slot.room = recipe.idle == Idle::filled ? slot.time : std::max(slot.time, recipe.limit);
  }
  narrow = fill(slots, narrow, recipe, work);
  if (narrow.empty()) return slots;
  std::vector<PackedSlot> apart;
  if (!recipe.is_last) apart = with_rest_apart(slots, narrow, recipe, work);
  spread(slots, narrow, recipe, work);
  return !apart.empty() && total_time(apart) < total_time(slots) ? apart : slots;
}

// Packs items, dearest first, into groups that take at most the limit where they can.
std::vector<PackedGroup> SlotBuilder::pack(const std::vector<ItemId>& items,
                                           const SlotRecipe& recipe, std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  std::vector<PackedGroup> groups;
  OpenGroups open(*this);
  for (const ItemId item : items) {
    --work;
    const std::size_t best = place_within(recipe, item);
    const bool may_share =
        cost(best, item) + fixed(best) <= recipe.limit && !problem_.is_alone(item);
    std::int32_t id = -1;
    for (std::size_t place = best; may_share && place < sizes.size() && id < 0; ++place) {
      if (!open.has_any(place)) continue;
      if (overhead(place, item) > 1.1 * overhead(best, item)) break;
      if (!problem_.item_fits(sizes[place], item)) continue;
      id = open.take(
          place, item,
          [&](std::int32_t g) -> const PackedGroup& { return groups[static_cast<std::size_t>(g)]; },
          [&](std::int32_t g) { return recipe.limit - groups[static_cast<std::size_t>(g)].time; });
    }
    if (id < 0) {
      id = static_cast<std::int32_t>(groups.size());
      groups.push_back(group_at(best));
    }
    PackedGroup& group = groups[static_cast<std::size_t>(id)];
    put(group, item);
    if (may_share) open.add(group, recipe.limit - group.time, id);
  }
  return groups;
}

bool SlotBuilder::can_place(const std::vector<PackedGroup>& groups, const PackedGroup& more) const {
  std::vector<std::int32_t> sizes;
  for (const PackedGroup& group : groups) sizes.push_back(group.size);
  sizes.push_back(more.size);
  return !places_.find(sizes).empty();
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
    std::int32_t room = problem_.num_ranks();
    std::vector<std::int32_t> later;
    for (const std::int32_t index : rest) {
      PackedGroup& group = groups[static_cast<std::size_t>(index)];
      if (group.size > room || (!places_.is_simple() && !can_place(slot.groups, group))) {
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

// Slot by slot: the items that take longest alone stand side by side, all that is left fills the
// time that they leave. Ends when what is left needs no wide group and no longer slots.
std::vector<PackedSlot> SlotBuilder::build_in_turn(const std::vector<ItemId>& items,
                                                   const SlotRecipe& recipe,
                                                   std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  struct Entry {
    Nanoseconds time;
    std::size_t place;
    ItemId item;
  };
  std::vector<Entry> entries;  // longest first
  for (const ItemId item : items) {
    const std::size_t place = place_within(recipe, item);
    entries.push_back({cost(place, item) + fixed(place), place, item});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
  std::vector<bool> is_used(position_.size(), false);
  std::vector<ItemId> left = items;  // dearest first
  std::vector<PackedSlot> slots;
  while (!left.empty()) {
    const bool is_narrow = std::all_of(left.begin(), left.end(), [&](ItemId item) {
      return smallest_from(recipe.base, item) == recipe.base && !problem_.is_alone(item);
    });
    if (is_narrow && cost(recipe.base, left.front()) <= even_share(left, recipe.base)) break;
    std::vector<PackedSlot> slot(1);
    std::int32_t room = problem_.num_ranks();
    for (const Entry& entry : entries) {
      if (room < sizes.front()) break;
      if (is_used[static_cast<std::size_t>(entry.item)] || sizes[entry.place] > room) continue;
      if (!places_.is_simple() && !can_place(slot[0].groups, group_at(entry.place))) continue;
      is_used[static_cast<std::size_t>(entry.item)] = true;
      PackedGroup group = group_at(entry.place);
      put(group, entry.item);
      slot[0].time = std::max(slot[0].time, group.time);
      slot[0].groups.push_back(std::move(group));
      room -= sizes[entry.place];
    }
    slot[0].room = slot[0].time;
    std::erase_if(left, [&](ItemId item) { return is_used[static_cast<std::size_t>(item)]; });
    std::erase_if(
        entries, [&](const Entry& entry) { return is_used[static_cast<std::size_t>(entry.item)]; });
    left = fill(slot, left, {.base = recipe.base, .idle = Idle::spread}, work);
    for (const PackedGroup& group : slot[0].groups) {
      for (const ItemId item : group.items) is_used[static_cast<std::size_t>(item)] = true;
    }
    slots.push_back(std::move(slot[0]));
  }
  if (!left.empty()) {
    SlotRecipe rest = recipe;
    rest.wide = Wide::at_once;
    rest.idle = Idle::spread;
    rest.limit = never;
    for (PackedSlot& slot : build(left, rest, work)) slots.push_back(std::move(slot));
  }
  return slots;
}

// What every cell gets of items, if they fill as many slots as their tokens need.
Nanoseconds SlotBuilder::even_share(const std::vector<ItemId>& items, std::size_t base) const {
  double sum = 0;
  Tokens tokens = 0;
  for (const ItemId item : items) {
    sum += static_cast<double>(cost(base, item));
    tokens += problem_.tokens(problem_.sizes()[base], item);
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
    sum += static_cast<double>(cost(recipe.base, item));
    tokens += problem_.tokens(problem_.sizes()[recipe.base], item);
  }
  const double mean = sum * problem_.sizes()[recipe.base] / problem_.num_ranks();
  const Tokens room = problem_.capacity() * problem_.num_ranks();
  const Tokens fewest = (tokens + room - 1) / room;
  std::vector<PackedSlot> best;
  Nanoseconds best_time = never;
  for (Tokens m = fewest; m < fewest + 2; ++m) {
    const auto limit =
        static_cast<Nanoseconds>(mean / static_cast<double>(m) * 1.01) + fixed(recipe.base);
    if (cost(recipe.base, items.front()) + fixed(recipe.base) <= limit) continue;
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
  const auto sizes = problem_.sizes();
  struct Where {
    std::size_t slot;
    std::size_t group;
  };
  std::vector<Where> where;
  OpenGroups open(*this);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::int32_t idle = problem_.num_ranks();
    for (const PackedGroup& group : slots[s].groups) idle -= group.size;
    for (; recipe.idle == Idle::filled && idle >= sizes[recipe.base] && places_.is_simple();
         idle -= sizes[recipe.base]) {
      slots[s].groups.push_back(group_at(recipe.base));
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
  std::vector<ItemId> rest = items;
  for (const double most : {1.05, 1.2, 4.0}) {
    std::size_t kept = 0;
    for (const ItemId item : rest) {
      --work;
      std::int32_t id = -1;
      for (std::size_t place = smallest_from(recipe.base, item); place < sizes.size() && id < 0;
           ++place) {
        if (!open.has_any(place)) continue;
        if (overhead(place, item) > most) break;
        if (problem_.item_fits(sizes[place], item)) {
          id = open.take(place, item, group_of, time_left_of);
        }
      }
      if (id < 0) {
        rest[kept++] = item;
        continue;
      }
      PackedGroup& group = group_of(id);
      put(group, item);
      PackedSlot& slot = slots[where[static_cast<std::size_t>(id)].slot];
      slot.time = std::max(slot.time, group.time);
      open.add(group, slot.room - group.time, id);
    }
    rest.resize(kept);
  }
  for (PackedSlot& slot : slots) {
    std::erase_if(slot.groups, [](const PackedGroup& group) { return group.items.empty(); });
  }
  return rest;
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
  Tokens volume = 0;
  for (const ItemId item : items) {
    costs.push_back(cost(recipe.base, item));
    tokens.push_back(problem_.tokens(size, item));
    sequences.push_back(problem_.num_sequences(item));
    volume += tokens.back();
  }
  std::vector<std::size_t> beside;  // the slot of each idle cell, longest slot first
  if (recipe.idle == Idle::spread && places_.is_simple()) {
    for (std::size_t s = 0; s < slots.size(); ++s) {
      std::int32_t room = problem_.num_ranks();
      for (const PackedGroup& group : slots[s].groups) room -= group.size;
      for (; room >= size; room -= size) beside.push_back(s);
    }
    std::stable_sort(beside.begin(), beside.end(),
                     [&](std::size_t a, std::size_t b) { return slots[a].time > slots[b].time; });
  }
  const auto num_beside = static_cast<std::int32_t>(beside.size());
  Limits limits{.capacity = problem_.capacity() * size};
  if (problem_.options().max_sequences > 0) limits.max_size = problem_.options().max_sequences;
  const auto num_bins = static_cast<std::int32_t>((volume + limits.capacity - 1) / limits.capacity);
  const std::int32_t fewest =
      std::max(num_beside > 0 ? 0 : 1, (num_bins - num_beside + cells - 1) / cells);
  std::vector<PackedSlot> best;
  Nanoseconds best_time = never;
  const Units units{.costs = costs, .tokens = tokens, .sizes = sequences};
  for (std::int32_t m = fewest; m < fewest + (recipe.is_quick ? 2 : 3); ++m) {
    if (recipe.is_quick && best_time != never) break;
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
    std::vector<PackedGroup> groups(static_cast<std::size_t>(bins), group_at(recipe.base));
    for (std::size_t i = 0; i < items.size(); ++i) {
      put(groups[static_cast<std::size_t>((*bin_of)[i])], items[i]);
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

void SlotBuilder::settle(std::vector<PackedSlot>& slots) const {
  if (is_alike_) return;
  for (PackedSlot& slot : slots) slot.time = placed(slot).second;
}

std::pair<std::vector<DraftGroup>, Nanoseconds> SlotBuilder::placed(const PackedSlot& slot) const {
  std::vector<std::int32_t> sizes;
  for (const PackedGroup& group : slot.groups) sizes.push_back(group.size);
  const std::vector<std::int32_t> places = places_.find(sizes);
  std::vector<DraftGroup> groups;
  Nanoseconds slowest = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    groups.push_back(
        {.ranks = {.first = places[i], .size = sizes[i]}, .items = slot.groups[i].items});
    slowest = std::max(slowest, group_time(problem_, groups.back()));
  }
  return {std::move(groups), slowest};
}

}  // namespace isochron
