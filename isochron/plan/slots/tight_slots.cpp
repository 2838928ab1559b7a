// Slot by slot, as long as the longest item that is left takes on a group of some size.
//
// Beside it stand the items that need wide groups too, those that come closest to its end first.
// What time they leave, and then cell after cell, is filled with the dearest items that fit, the
// last two of which are exchanged for the pair that leaves least. Of several sizes for the longest
// item the one counts whose slot gets most done for its time. What needs neither wide groups nor
// longer slots than an even share is spread in the end.

#include "isochron/plan/slots/tight_slots.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace isochron {

namespace {

constexpr std::int32_t none = -1;

}  // namespace

// Items that are left, dearest first; some are taken for a while.
class TightSlots::Pool {
 public:
  Pool(const SlotItems& items, const std::vector<ItemId>& left)
      : items_(items), left_(left), words_(left.size() / 64 + 1, ~std::uint64_t{0}) {
    words_.back() = (std::uint64_t{1} << (left.size() % 64)) - 1;
  }

  [[nodiscard]] ItemId item(std::int32_t index) const {
    return left_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] bool has(std::int32_t index) const {
    return (words_[static_cast<std::size_t>(index) / 64] >> (index % 64) & 1) != 0;
  }
  void take(std::int32_t index) {
    words_[static_cast<std::size_t>(index) / 64] &= ~(std::uint64_t{1} << (index % 64));
  }
  void give(std::int32_t index) {
    words_[static_cast<std::size_t>(index) / 64] |= std::uint64_t{1} << (index % 64);
  }

  // The first one from `index` on that is not taken.
  [[nodiscard]] std::int32_t next(std::int32_t index) const {
    auto word = static_cast<std::size_t>(index) / 64;
    if (word >= words_.size()) return none;
    std::uint64_t bits = words_[word] & ~std::uint64_t{0} << (index % 64);
    while (bits == 0) {
      if (++word == words_.size()) return none;
      bits = words_[word];
    }
    return static_cast<std::int32_t>(word * 64) + std::countr_zero(bits);
  }

  // The first from `index` on that a group of this place with so much room takes.
  [[nodiscard]] std::int32_t first_within(std::size_t place, std::int32_t index, Nanoseconds time,
                                          Tokens tokens, std::int32_t seats) const {
    const Problem& problem = items_.problem();
    const auto fits = [&](ItemId item) {
      return items_.cost(place, item) <= time && items_.tokens(place, item) <= tokens;
    };
    std::int32_t low = index;
    auto high = static_cast<std::int32_t>(left_.size());
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (fits(item(middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    // Costs on larger groups, and tokens, need not have the order of costs on the smallest.
    constexpr int max_tries = 4;
    for (int tries = 0; tries < max_tries; ++tries) {
      low = next(low);
      if (low == none) return none;
      const ItemId found = item(low);
      if (fits(found) && !problem.is_alone(found) && problem.num_sequences(found) <= seats) {
        return low;
      }
      ++low;
    }
    return none;
  }

 private:
  const SlotItems& items_;
  const std::vector<ItemId>& left_;
  std::vector<std::uint64_t> words_;
};

struct TightSlots::Trial {
  PackedSlot slot = {};
  double useful = 0;  // areas of its items
};

TightSlots::TightSlots(const SlotItems& items, const SlotPlaces& places, const SlotBuilder& builder)
    : items_(items), problem_(items.problem()), places_(places), builder_(builder) {}

// What is left to do.
struct TightSlots::State {
  std::vector<ItemId> left;         // dearest first
  std::vector<Entry> longest;       // the same items, longest first
  std::vector<std::int32_t> index;  // of each item in `left`
  std::int32_t num_wide = 0;        // items that need more than a cell
};

TightSlots::State TightSlots::begin(const std::vector<ItemId>& items, std::size_t base) const {
  State state;
  state.left = items;
  state.longest.reserve(items.size());
  state.index.resize(items_.dearest().size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ItemId item = items[i];
    const std::size_t place = items_.smallest_from(base, item);
    state.longest.push_back({items_.cost(place, item) + items_.fixed(place), place, item});
    state.index[static_cast<std::size_t>(item)] = static_cast<std::int32_t>(i);
    state.num_wide += needs_more(base, item) ? 1 : 0;
  }
  std::stable_sort(state.longest.begin(), state.longest.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
  return state;
}

bool TightSlots::needs_more(std::size_t base, ItemId item) const {
  return items_.smallest_from(base, item) > base || problem_.is_alone(item);
}

// Takes the items of a slot away.
void TightSlots::remove(const PackedSlot& slot, std::size_t base, State& state) const {
  for (const PackedGroup& group : slot.groups) {
    for (const ItemId item : group.items) {
      state.index[static_cast<std::size_t>(item)] = none;
      state.num_wide -= needs_more(base, item) ? 1 : 0;
    }
  }
  const auto is_gone = [&](ItemId item) {
    return state.index[static_cast<std::size_t>(item)] == none;
  };
  std::erase_if(state.left, is_gone);
  std::erase_if(state.longest, [&](const Entry& entry) { return is_gone(entry.item); });
  for (std::size_t i = 0; i < state.left.size(); ++i) {
    state.index[static_cast<std::size_t>(state.left[i])] = static_cast<std::int32_t>(i);
  }
}

std::vector<PackedSlot> TightSlots::build(const std::vector<ItemId>& items,
                                          const TightRecipe& recipe, std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  const double ranks = problem_.num_ranks();
  State state = begin(items, recipe.base);
  std::vector<PackedSlot> slots;
  double taken = 0;  // time
  double rest = 0;   // area of what is left
  for (const ItemId item : items) rest += items_.least_area(item);
  while (!state.left.empty()) {
    if (state.num_wide == 0 && items_.cost(recipe.base, state.left.front()) <=
                                   builder_.even_share(state.left, recipe.base)) {
      break;
    }
    constexpr double good_share = 0.99;
    const Entry entry = state.longest.front();
    Trial best;
    double best_share = -1;
    Nanoseconds last = 0;
    std::int32_t num_tried = 0;
    for (std::size_t place = entry.place;
         place < sizes.size() && num_tried < recipe.num_lengths && best_share < good_share;
         ++place) {
      if (!problem_.item_fits(sizes[place], entry.item)) continue;
      const Nanoseconds time = items_.cost(place, entry.item) + items_.fixed(place);
      // Of groups of any size, one in a few is enough.
      if (num_tried > 0 && time > last - last / 64) continue;
      last = time;
      ++num_tried;
      Trial trial =
          try_slot(state, recipe, {.time = time, .place = place, .item = entry.item}, work);
      const double share = trial.useful / (ranks * static_cast<double>(trial.slot.time));
      if (share > best_share) {
        best_share = share;
        best = std::move(trial);
      }
    }
    taken += static_cast<double>(best.slot.time);
    rest -= best.useful;
    if (taken + rest / ranks > static_cast<double>(recipe.most)) return {};
    remove(best.slot, recipe.base, state);
    work -= static_cast<std::int64_t>(state.left.size() / 8);
    slots.push_back(std::move(best.slot));
  }
  if (!state.left.empty()) {
    const SlotRecipe even{.base = recipe.base,
                          .limit = std::numeric_limits<Nanoseconds>::max(),
                          .idle = SlotRecipe::Idle::spread,
                          .is_quick = recipe.is_quick,
                          .is_last = true};
    for (PackedSlot& slot : builder_.build(state.left, even, work)) {
      slots.push_back(std::move(slot));
    }
  }
  return slots;
}

// Items that take longer than a slot on the smallest groups that hold them, on larger ones that end
// with it, longest first. The items of `longest` up to `end` are meant.
std::vector<TightSlots::Entry> TightSlots::widened(const State& state, std::size_t base,
                                                   Nanoseconds length, std::size_t end) const {
  std::vector<Entry> result;
  for (std::size_t i = 0; i < end; ++i) {
    const ItemId item = state.longest[i].item;
    const std::size_t place = items_.smallest_within(base, length, item);
    const Nanoseconds time = items_.cost(place, item) + items_.fixed(place);
    if (time <= length) result.push_back({time, place, item});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
  return result;
}

// A slot as long as `first` takes.
TightSlots::Trial TightSlots::try_slot(const State& state, const TightRecipe& recipe,
                                       const Entry& first, std::int64_t& work) const {
  const auto sizes = problem_.sizes();
  const std::size_t base = recipe.base;
  const Nanoseconds length = first.time;
  Pool pool(items_, state.left);
  Trial trial;
  std::vector<PackedGroup>& groups = trial.slot.groups;
  SlotRoom room(places_, problem_.num_ranks());
  const auto place_group = [&](const Entry& entry) {
    if (!room.take(sizes[entry.place])) return;
    groups.push_back(items_.group_at(entry.place));
    items_.put(groups.back(), entry.item);
    pool.take(state.index[static_cast<std::size_t>(entry.item)]);
  };
  place_group(first);
  const auto end = static_cast<std::size_t>(
      std::partition_point(state.longest.begin(), state.longest.end(),
                           [&](const Entry& entry) { return entry.time > length; }) -
      state.longest.begin());
  const std::vector<Entry> longer = widened(state, base, length, end);
  std::size_t next = 0;
  for (std::size_t i = end; room.num_free() >= sizes[base];) {
    // Of both lists the longer one; what needs no more than a cell comes later.
    const bool is_longer = next < longer.size() && (i == state.longest.size() ||
                                                    longer[next].time >= state.longest[i].time);
    if (!is_longer && i == state.longest.size()) break;
    const Entry& entry = is_longer ? longer[next++] : state.longest[i++];
    --work;
    if (entry.item != first.item && entry.place > base) place_group(entry);
  }
  for (PackedGroup& group : groups) {
    if (!problem_.is_alone(group.items.front())) fill(group, length, recipe.grain, pool);
  }
  while (room.take(sizes[base])) {
    PackedGroup group = items_.group_at(base);
    fill(group, length, recipe.grain, pool);
    if (group.items.empty()) break;
    groups.push_back(std::move(group));
  }
  for (const PackedGroup& group : groups) {
    trial.slot.time = std::max(trial.slot.time, group.time);
    work -= static_cast<std::int64_t>(group.items.size());
    for (const ItemId item : group.items) trial.useful += items_.least_area(item);
  }
  trial.slot.room = trial.slot.time;
  return trial;
}

// Fills a group up to a length: dearest first, then the best pair in place of the last two.
void TightSlots::fill(PackedGroup& group, Nanoseconds length, std::int32_t grain,
                      Pool& pool) const {
  const auto place = static_cast<std::size_t>(group.place);
  const std::int32_t max_sequences = problem_.options().max_sequences;
  const Tokens capacity = problem_.capacity() * group.size;
  std::int32_t seats = max_sequences > 0 ? max_sequences - group.num_sequences
                                         : std::numeric_limits<std::int32_t>::max();
  Nanoseconds time = length - group.time;
  Tokens tokens = capacity - group.tokens;
  std::vector<std::int32_t> taken;
  const auto change = [&](std::int32_t index, int sign) {
    const ItemId item = pool.item(index);
    time -= sign * items_.cost(place, item);
    tokens -= sign * items_.tokens(place, item);
    if (max_sequences > 0) seats -= sign * problem_.num_sequences(item);
  };
  for (std::int32_t index = 0;;) {
    index = pool.first_within(place, index, time, tokens, seats);
    if (index == none) break;
    change(index, 1);
    pool.take(index);
    taken.push_back(index);
  }
  if (!taken.empty() && time > length >> grain) {
    std::vector<std::int32_t> best(taken.end() - std::min<std::ptrdiff_t>(2, std::ssize(taken)),
                                   taken.end());
    taken.resize(taken.size() - best.size());
    Nanoseconds least = time;
    for (const std::int32_t index : best) {
      change(index, -1);
      pool.give(index);
    }
    constexpr int max_firsts = 24;
    std::int32_t first = 0;
    for (int tries = 0; tries < max_firsts && least > length >> grain; ++tries, ++first) {
      first = pool.first_within(place, first, time, tokens, seats);
      if (first == none) break;
      change(first, 1);
      const std::int32_t second = pool.first_within(place, first + 1, time, tokens, seats);
      Nanoseconds rest = time;
      if (second != none) rest -= items_.cost(place, pool.item(second));
      if (rest < least) {
        least = rest;
        best.assign(1, first);
        if (second != none) best.push_back(second);
      }
      change(first, -1);
    }
    for (const std::int32_t index : best) {
      pool.take(index);
      taken.push_back(index);
    }
  }
  for (const std::int32_t index : taken) items_.put(group, pool.item(index));
}

}  // namespace isochron
