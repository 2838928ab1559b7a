// Slot by slot, as long as one of the longest items that are left takes on a group of some size.
//
// In a slot of some length the longest item comes first, then those that need wide groups too and
// come closest to its end. What time they leave, and then cell after cell, is filled with the
// dearest items that fit, the last two of which are exchanged for the pair that leaves least. Of
// several lengths the one counts whose slot gets most done for its time; or, with foresight, the
// one that wastes least together with the slots that would follow it, since what is left out of a
// long slot may need one of its own. What needs neither wide groups nor longer slots than an even
// share is spread in the end.

#include "isochron/plan/slots/tight_slots.h"

#include <algorithm>

namespace isochron {

namespace {

constexpr std::int32_t none = SlotPool::none;

}  // namespace

TightSlots::TightSlots(const SlotItems& items, const SlotPlaces& places, const SlotBuilder& builder)
    : items_(items), problem_(items.problem()), places_(places), builder_(builder) {}

TightSlots::State TightSlots::begin(const std::vector<ItemId>& items, std::size_t base) const {
  State state{.pool = SlotPool(items_, items)};
  state.longest.reserve(items.size());
  for (const ItemId item : items) {
    const std::size_t place = items_.smallest_from(base, item);
    state.longest.push_back(
        {items_.cost(place, item) + items_.fixed(place), place, items_.position(item)});
    state.num_wide += needs_more(base, item) ? 1 : 0;
    state.num_wider += place > base ? 1 : 0;
    state.area += items_.least_area(item);
  }
  std::stable_sort(state.longest.begin(), state.longest.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
  return state;
}

bool TightSlots::needs_more(std::size_t base, ItemId item) const {
  return items_.smallest_from(base, item) > base || problem_.is_alone(item);
}

// Takes the items of a slot away.
void TightSlots::remove(const Trial& trial, std::size_t base, State& state) const {
  for (const PackedGroup& group : trial.slot.groups) {
    for (const ItemId item : group.items) {
      state.pool.take(items_.position(item));
      state.num_wide -= needs_more(base, item) ? 1 : 0;
      state.num_wider -= items_.smallest_from(base, item) > base ? 1 : 0;
    }
  }
  state.area -= trial.useful;
  std::erase_if(state.longest, [&](const Entry& entry) { return !state.pool.has(entry.position); });
}

std::vector<PackedSlot> TightSlots::build(const std::vector<ItemId>& items,
                                          const TightRecipe& recipe, std::int64_t& work) const {
  const auto begun = start(items, recipe, work);
  return begun ? finished(*begun, recipe, work) : std::vector<PackedSlot>{};
}

std::optional<TightStart> TightSlots::start(const std::vector<ItemId>& items,
                                            const TightRecipe& recipe, std::int64_t& work) const {
  State state = begin(items, recipe.base);
  TightStart result;
  double taken = 0;  // time
  while (!state.longest.empty()) {
    if (state.num_wide == 0) {
      result.rest = state.pool.left();
      const Nanoseconds share = builder_.even_share(result.rest, recipe.base);
      if (items_.cost(recipe.base, result.rest.front()) <= share) return result;
    }
    Trial best = next_slot(state, recipe, work);
    taken += static_cast<double>(best.slot.time);
    remove(best, recipe.base, state);
    if (taken + state.area / problem_.num_ranks() > static_cast<double>(recipe.most)) {
      return std::nullopt;
    }
    work -= std::ssize(state.longest) / 8;
    result.slots.push_back(std::move(best.slot));
  }
  result.rest.clear();
  return result;
}

std::vector<PackedSlot> TightSlots::finished(const TightStart& start, const TightRecipe& recipe,
                                             std::int64_t& work) const {
  std::vector<PackedSlot> slots = start.slots;
  if (start.rest.empty()) return slots;
  const SlotRecipe even{.base = recipe.base,
                        .limit = std::numeric_limits<Nanoseconds>::max(),
                        .idle = SlotRecipe::Idle::spread,
                        .is_quick = recipe.is_quick,
                        .is_last = true};
  for (PackedSlot& slot : builder_.build(start.rest, even, work)) slots.push_back(std::move(slot));
  return slots;
}

TightStart TightSlots::of_lengths(State state, std::span<const Nanoseconds> lengths,
                                  const TightRecipe& recipe, std::int64_t& work) const {
  TightStart result;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (state.longest.empty() || state.area > most_area(state, lengths.subspan(i))) break;
    Trial trial = try_slot(state, recipe, lengths[i], work);
    remove(trial, recipe.base, state);
    result.slots.push_back(std::move(trial.slot));
  }
  result.rest = state.pool.left();
  return result;
}

// That slots of these lengths hold beside the fixed parts of their groups, if each is at least as
// long as the longest item takes at its fastest.
double TightSlots::most_area(const State& state, std::span<const Nanoseconds> lengths) const {
  const ItemId item = state.pool.item(state.longest.front().position);
  const std::size_t fastest = items_.smallest_within(0, 0, item);
  const Nanoseconds longest = items_.cost(fastest, item) + items_.fixed(fastest);
  double time = 0;
  for (const Nanoseconds length : lengths) {
    time += static_cast<double>(std::max(length, longest) - items_.fixed(0));
  }
  return time * problem_.num_ranks();
}

double TightSlots::share_of(const Trial& trial) const {
  return trial.useful / (problem_.num_ranks() * static_cast<double>(trial.slot.time));
}
double TightSlots::waste_of(const Trial& trial) const {
  return problem_.num_ranks() * static_cast<double>(trial.slot.time) - trial.useful;
}

TightSlots::Trial TightSlots::next_slot(const State& state, const TightRecipe& recipe,
                                        std::int64_t& work) const {
  return recipe.looks_ahead ? foreseen_slot(state, recipe, work)
                            : fullest_slot(state, recipe, work);
}

// Of the lengths of the longest item the one whose slot gets most done for its time.
TightSlots::Trial TightSlots::fullest_slot(const State& state, const TightRecipe& recipe,
                                           std::int64_t& work) const {
  constexpr double good_share = 0.99;
  Trial best;
  double best_share = -1;
  for (const Nanoseconds length : own_lengths(state, recipe)) {
    Trial trial = try_slot(state, recipe, length, work);
    const double share = share_of(trial);
    if (share > best_share) {
      best_share = share;
      best = std::move(trial);
    }
    if (best_share >= good_share) break;
  }
  return best;
}

// Of many lengths the one that wastes least together with the slots that would follow.
TightSlots::Trial TightSlots::foreseen_slot(const State& state, const TightRecipe& recipe,
                                            std::int64_t& work) const {
  constexpr double good_share = 0.985;
  const TightRecipe sketch{.base = recipe.base, .num_lengths = 2, .grain = 0};
  Nanoseconds best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Nanoseconds length : all_lengths(state, recipe)) {
    const bool is_first = best == 0;
    Trial trial = try_slot(state, is_first ? recipe : sketch, length, work);
    if (is_first && share_of(trial) >= good_share) return trial;
    double waste = waste_of(trial);
    if (waste >= least) continue;
    State rest = state;
    remove(trial, recipe.base, rest);
    waste += waste_ahead(std::move(rest), sketch, least - waste, work);
    if (waste < least) {
      least = waste;
      best = length;
    }
  }
  return try_slot(state, recipe, best, work);
}

// What slots waste that follow, up to the first good one, and about what the others do. Ends early
// if it is more than `most`.
double TightSlots::waste_ahead(State state, const TightRecipe& recipe, double most,
                               std::int64_t& work) const {
  constexpr int most_slots = 2;
  constexpr double good_share = 0.98;
  constexpr double usual_waste = 0.01;
  double waste = 0;
  for (int i = 0; i < most_slots && state.num_wide > 0 && waste < most; ++i) {
    const Trial trial = fullest_slot(state, recipe, work);
    waste += waste_of(trial);
    if (share_of(trial) >= good_share) {
      state.area -= trial.useful;
      break;
    }
    remove(trial, recipe.base, state);
  }
  return waste + usual_waste * state.area;
}

// What the longest item takes on groups of a few sizes.
std::vector<Nanoseconds> TightSlots::own_lengths(const State& state,
                                                 const TightRecipe& recipe) const {
  const auto sizes = problem_.sizes();
  const Entry& longest = state.longest.front();
  const ItemId item = state.pool.item(longest.position);
  std::vector<Nanoseconds> lengths;
  for (std::size_t place = longest.place;
       place < sizes.size() && std::ssize(lengths) < recipe.num_lengths; ++place) {
    if (!items_.fits(place, item)) continue;
    const Nanoseconds time = items_.cost(place, item) + items_.fixed(place);
    // Of groups of any size, one in a few is enough.
    if (lengths.empty() || time <= lengths.back() - lengths.back() / 64) lengths.push_back(time);
  }
  return lengths;
}

// The same, what other items take between those, and some in wide gaps.
std::vector<Nanoseconds> TightSlots::all_lengths(const State& state,
                                                 const TightRecipe& recipe) const {
  constexpr std::size_t most_others = 4;
  constexpr Nanoseconds step = 32;  // no two are closer than such a part,
  constexpr Nanoseconds gap = 12;   // nor, in a row, farther apart
  std::vector<Nanoseconds> lengths = own_lengths(state, recipe);
  if (lengths.size() < 2) return lengths;
  const std::size_t most = lengths.size() + most_others;
  const Nanoseconds least = lengths.back() + lengths.back() / step;
  Nanoseconds last = lengths.front();
  for (std::size_t i = 1; i < state.longest.size() && lengths.size() < most; ++i) {
    const Nanoseconds time = std::max(state.longest[i].time, least);
    while (time < last - last / gap && lengths.size() < most) {
      last -= last / gap;
      lengths.push_back(last);
    }
    if (time == least) break;
    if (time > last - last / step) continue;
    last = time;
    lengths.push_back(time);
  }
  return lengths;
}

// Items that take longer than a slot on the smallest groups that hold them, on larger ones that end
// with it, longest first. The items of `longest` up to `end` are meant.
std::vector<TightSlots::Entry> TightSlots::widened(const State& state, std::size_t base,
                                                   Nanoseconds length, std::size_t end) const {
  std::vector<Entry> result;
  // More than the slot has ranks for would wait for another one.
  end = std::min(end, static_cast<std::size_t>(problem_.num_ranks()));
  result.reserve(end);
  for (std::size_t i = 0; i < end; ++i) {
    const std::int32_t position = state.longest[i].position;
    const ItemId item = state.pool.item(position);
    const std::size_t place = items_.smallest_within(base, length, item);
    const Nanoseconds time = items_.cost(place, item) + items_.fixed(place);
    if (time <= length) result.push_back({time, place, position});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
  return result;
}

// A slot of some length, with the longest item in it even if that takes longer.
TightSlots::Trial TightSlots::try_slot(const State& state, const TightRecipe& recipe,
                                       Nanoseconds length, std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  const std::size_t base = recipe.base;
  SlotPool pool = state.pool;
  Trial trial;
  std::vector<PackedGroup>& groups = trial.slot.groups;
  SlotRoom room(places_, problem_.num_ranks());
  const auto place_group = [&](std::size_t place, std::int32_t position) {
    if (!room.take(sizes[place])) return;
    groups.push_back(items_.group_at(place));
    items_.put(groups.back(), pool.item(position));
    pool.take(position);
  };
  const std::int32_t first = state.longest.front().position;
  place_group(items_.smallest_within(base, length, pool.item(first)), first);
  length = std::max(length, groups.front().time);
  const auto end = static_cast<std::size_t>(
      std::partition_point(state.longest.begin(), state.longest.end(),
                           [&](const Entry& entry) { return entry.time > length; }) -
      state.longest.begin());
  const std::vector<Entry> longer = widened(state, base, length, end);
  std::int32_t num_wider = state.num_wider;  // at or behind i
  for (std::size_t i = 0; i < end; ++i) num_wider -= state.longest[i].place > base ? 1 : 0;
  std::size_t next = 0;
  for (std::size_t i = end; room.num_free() >= sizes[base];) {
    if (next == longer.size() && num_wider == 0) {  // the others need no more than a cell
      work -= static_cast<std::int64_t>(state.longest.size() - i);
      break;
    }
    // Of both lists the longer one; what needs no more than a cell comes later.
    const bool is_longer = next < longer.size() && (i == state.longest.size() ||
                                                    longer[next].time >= state.longest[i].time);
    const Entry& entry = is_longer ? longer[next++] : state.longest[i++];
    --work;
    if (!is_longer && entry.place > base) --num_wider;
    if (entry.position != first && entry.place > base) place_group(entry.place, entry.position);
  }
  std::vector<std::int32_t> taken;
  for (PackedGroup& group : groups) {
    if (problem_.is_alone(group.items.front())) continue;
    static_cast<void>(fill(group, length, recipe.grain, 0, pool, taken));
  }
  groups.reserve(groups.size() + static_cast<std::size_t>(room.num_free() / sizes[base]));
  std::int32_t first_fitting = 0;  // what was too large for one cell is so for the next
  while (room.take(sizes[base])) {
    PackedGroup group = items_.group_at(base);
    first_fitting = fill(group, length, recipe.grain, first_fitting, pool, taken);
    if (group.items.empty()) break;
    groups.push_back(std::move(group));
  }
  for (const PackedGroup& group : groups) {
    trial.slot.time = std::max(trial.slot.time, group.time);
    work -= std::ssize(group.items);
    for (const ItemId item : group.items) trial.useful += items_.least_area(item);
  }
  trial.slot.room = trial.slot.time;
  return trial;
}

// Fills a group up to a length: dearest first, then the best pair in place of the last two. Returns
// the position of the first that it found at or behind `first`. Uses the memory of `taken`.
std::int32_t TightSlots::fill(PackedGroup& group, Nanoseconds length, std::int32_t grain,
                              std::int32_t first, SlotPool& pool,
                              std::vector<std::int32_t>& taken) const {
  const auto place = static_cast<std::size_t>(group.place);
  const SlotItems::Row row = items_.row(place);
  const std::int32_t max_sequences = problem_.options().max_sequences;
  std::int32_t seats = max_sequences > 0 ? max_sequences - group.num_sequences
                                         : std::numeric_limits<std::int32_t>::max();
  Nanoseconds time = length - group.time;
  Tokens tokens = problem_.capacity() * group.size - group.tokens;
  taken.clear();
  const auto change = [&](std::int32_t position, int sign) {
    const SlotItems::Known& known = row[position];
    time -= sign * known.cost;
    tokens -= sign * known.tokens;
    if (max_sequences > 0) seats -= sign * problem_.num_sequences(pool.item(position));
  };
  for (std::int32_t position = first;;) {
    position = pool.first_within(place, position, time, tokens, seats);
    if (position == none) break;
    if (taken.empty()) first = position;
    change(position, 1);
    pool.take(position);
    taken.push_back(position);
  }
  if (!taken.empty() && time > length >> grain) {
    std::vector<std::int32_t> best(taken.end() - std::min<std::ptrdiff_t>(2, std::ssize(taken)),
                                   taken.end());
    taken.resize(taken.size() - best.size());
    Nanoseconds least = time;
    for (const std::int32_t position : best) {
      change(position, -1);
      pool.give(position);
    }
    constexpr int max_firsts = 24;
    std::int32_t one = 0;
    for (int tries = 0; tries < max_firsts && least > length >> grain; ++tries, ++one) {
      one = pool.first_within(place, one, time, tokens, seats);
      if (one == none) break;
      change(one, 1);
      const std::int32_t second = pool.first_within(place, one + 1, time, tokens, seats);
      const Nanoseconds rest = second == none ? time : time - row[second].cost;
      if (rest < least) {
        least = rest;
        best.assign(1, one);
        if (second != none) best.push_back(second);
      }
      change(one, -1);
    }
    for (const std::int32_t position : best) {
      pool.take(position);
      taken.push_back(position);
    }
  }
  group.items.reserve(group.items.size() + taken.size());
  for (const std::int32_t position : taken) items_.put(group, pool.item(position));
  return first;
}

}  // namespace isochron
