// Simulated annealing over where items are, with slots and the sizes of their groups as they stand.
//
// A move takes an item to another group, exchanges two items, or all items of two groups of one
// size in different slots. Every second item comes from the longest group of a slot, where alone a
// move can make a slot shorter. A slot takes what its longest group does, an empty one nothing.

#include "isochron/plan/slots/slot_anneal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "isochron/core/random.h"
#include "isochron/plan/cooling.h"

namespace isochron {

namespace {

class SlotAnnealing {
 public:
  SlotAnnealing(const SlotItems& items, const std::vector<PackedSlot>& slots)
      : items_(items), problem_(items.problem()), random_(3), group_of_(items.dearest().size()) {
    for (const PackedSlot& slot : slots) add_slot(slot);
    add_slot({});  // room for one more
    for (std::size_t s = 0; s < num_slots(); ++s) lengths_.push_back(longest_in(s));
  }

  std::vector<PackedSlot> run(Nanoseconds bound, std::int64_t num_trials) {
    Nanoseconds time = std::accumulate(lengths_.begin(), lengths_.end(), Nanoseconds{0});
    Nanoseconds best_time = time;
    std::vector<std::int32_t> best = group_of_;
    for (std::int64_t trial = 0; trial < num_trials && best_time > bound; ++trial) {
      const double cooled = static_cast<double>(trial) / static_cast<double>(num_trials);
      // What is taken with even odds: from 1e-4 of the time down to a thousandth of that.
      const double heat = 1e-4 * static_cast<double>(best_time) * halved(10 * cooled);
      time += try_move(heat);
      if (time < best_time) {
        best_time = time;
        best = group_of_;
      }
    }
    return slots_of(best);
  }

 private:
  struct Group {
    std::size_t place = 0;
    std::size_t slot = 0;
    Tokens tokens = 0;
    std::int32_t num_sequences = 0;
    std::vector<std::int32_t> items = {};  // positions
  };

  [[nodiscard]] std::size_t num_slots() const { return firsts_.size(); }

  void add_slot(const PackedSlot& slot) {
    firsts_.push_back(groups_.size());
    std::int32_t idle = problem_.num_ranks();
    for (const PackedGroup& group : slot.groups) {
      const std::size_t g =
          add_group({.place = static_cast<std::size_t>(group.place), .slot = firsts_.size() - 1});
      for (const ItemId item : group.items) {
        const std::int32_t position = items_.position(item);
        times_[g] = time_with(g, -1, position);
        put(position, static_cast<std::int32_t>(g));
      }
      idle -= group.size;
    }
    for (; idle >= problem_.sizes().front(); idle -= problem_.sizes().front()) {
      add_group({.slot = firsts_.size() - 1});
    }
  }
  std::size_t add_group(Group group) {
    groups_.push_back(std::move(group));
    times_.push_back(0);
    return groups_.size() - 1;
  }

  [[nodiscard]] std::size_t end_of(std::size_t slot) const {
    return slot + 1 < num_slots() ? firsts_[slot + 1] : groups_.size();
  }
  [[nodiscard]] Nanoseconds longest_in(std::size_t slot) const {
    Nanoseconds longest = 0;
    for (std::size_t g = firsts_[slot]; g < end_of(slot); ++g) {
      longest = std::max(longest, times_[g]);
    }
    return longest;
  }
  // The same, after one group of it took another time instead of `before`.
  [[nodiscard]] Nanoseconds longest_after(std::size_t slot, Nanoseconds before,
                                          Nanoseconds now) const {
    const Nanoseconds longest = lengths_[slot];
    return now >= longest || before < longest ? std::max(longest, now) : longest_in(slot);
  }

  // These leave the time of the group to time_with().
  void put(std::int32_t item, std::int32_t to) {
    Group& group = groups_[static_cast<std::size_t>(to)];
    group.items.push_back(item);
    count(group, item, 1);
    group_of_[static_cast<std::size_t>(item)] = to;
  }
  void take(std::int32_t item) {
    Group& group = group_at(item);
    move_to_end(group, item);
    group.items.pop_back();
    count(group, item, -1);
  }
  static void move_to_end(Group& group, std::int32_t item) {
    std::swap(*std::find(group.items.begin(), group.items.end(), item), group.items.back());
  }
  void count(Group& group, std::int32_t item, int sign) const {
    group.tokens += sign * items_.row(group.place)[item].tokens;
    group.num_sequences += sign * problem_.num_sequences(item_at(item));
  }
  // What a group takes after an item leaves and another joins (-1: none does); an empty one
  // nothing.
  [[nodiscard]] Nanoseconds time_with(std::size_t g, std::int32_t leaving,
                                      std::int32_t joining) const {
    const Group& group = groups_[g];
    if (joining < 0 && group.items.size() == 1) return 0;
    const SlotItems::Row row = items_.row(group.place);
    Nanoseconds time = group.items.empty() ? items_.fixed(group.place) : times_[g];
    if (leaving >= 0) time -= row[leaving].cost;
    if (joining >= 0) time += row[joining].cost;
    return time;
  }

  [[nodiscard]] ItemId item_at(std::int32_t position) const {
    return items_.dearest()[static_cast<std::size_t>(position)];
  }

  // Whether an item may join a group that another one leaves (-1: none does).
  [[nodiscard]] bool may_join(const Group& group, std::int32_t item, std::int32_t leaving) const {
    if (!items_.fits(group.place, item_at(item)) || problem_.is_alone(item_at(item))) return false;
    if (!group.items.empty() && problem_.is_alone(item_at(group.items.front()))) return false;
    const SlotItems::Row row = items_.row(group.place);
    Tokens tokens = group.tokens + row[item].tokens;
    std::int32_t sequences = group.num_sequences + problem_.num_sequences(item_at(item));
    if (leaving >= 0) {
      tokens -= row[leaving].tokens;
      sequences -= problem_.num_sequences(item_at(leaving));
    }
    const std::int32_t max_sequences = problem_.options().max_sequences;
    return tokens <= problem_.capacity() * problem_.sizes()[group.place] &&
           (max_sequences == 0 || sequences <= max_sequences);
  }

  [[nodiscard]] std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random_.below(count));
  }

  std::int32_t pick_item() {
    const auto item = static_cast<std::int32_t>(pick(group_of_.size()));
    if (random_.below(2) == 0) return item;
    const std::size_t slot = group_at(item).slot;
    for (std::size_t g = firsts_[slot]; g < end_of(slot); ++g) {
      const std::vector<std::int32_t>& items = groups_[g].items;
      if (times_[g] == lengths_[slot]) return items[pick(items.size())];
    }
    return item;
  }
  Group& group_at(std::int32_t item) {
    return groups_[static_cast<std::size_t>(group_of_[static_cast<std::size_t>(item)])];
  }

  // How much longer the slots are after a move; 0 if none is made.
  Nanoseconds try_move(double heat) {
    const std::int32_t item = pick_item();
    const std::int32_t from = group_of_[static_cast<std::size_t>(item)];
    const std::uint64_t kind = random_.below(8);
    std::int32_t other = -1;
    auto to = static_cast<std::int32_t>(pick(groups_.size()));
    if (kind < 4) {
      other = static_cast<std::int32_t>(pick(group_of_.size()));
      to = group_of_[static_cast<std::size_t>(other)];
    }
    Group& a = groups_[static_cast<std::size_t>(from)];
    Group& b = groups_[static_cast<std::size_t>(to)];
    if (from == to) return 0;
    const bool is_whole = kind == 7;
    Nanoseconds& time_a = times_[static_cast<std::size_t>(from)];
    Nanoseconds& time_b = times_[static_cast<std::size_t>(to)];
    const Nanoseconds before_a = time_a;
    const Nanoseconds before_b = time_b;
    if (is_whole) {
      if (a.place != b.place || a.slot == b.slot) return 0;
      std::swap(time_a, time_b);
    } else {
      if (!may_join(b, item, other) || (other >= 0 && !may_join(a, other, item))) return 0;
      time_a = time_with(static_cast<std::size_t>(from), item, other);
      time_b = time_with(static_cast<std::size_t>(to), other, item);
    }
    const bool is_inside = a.slot == b.slot;
    const Nanoseconds longest_a =
        is_inside ? longest_in(a.slot) : longest_after(a.slot, before_a, time_a);
    const Nanoseconds longest_b = is_inside ? longest_a : longest_after(b.slot, before_b, time_b);
    Nanoseconds longer = longest_a - lengths_[a.slot];
    if (!is_inside) longer += longest_b - lengths_[b.slot];
    if (longer > 0 && random_.unit() >= halved(static_cast<double>(longer) / heat)) {
      time_a = before_a;
      time_b = before_b;
      return 0;
    }
    if (is_whole) {
      exchange(a, b);
    } else {
      exchange(item, to, other, from);
    }
    lengths_[a.slot] = longest_a;
    lengths_[b.slot] = longest_b;
    return longer;
  }

  void exchange(std::int32_t item, std::int32_t to, std::int32_t other, std::int32_t other_to) {
    take(item);
    if (other >= 0) {
      take(other);
      put(other, other_to);
    }
    put(item, to);
  }
  void exchange(Group& a, Group& b) {
    std::swap(a, b);
    std::swap(a.slot, b.slot);
    for (Group* group : {&a, &b}) {
      for (const std::int32_t item : group->items) {
        group_of_[static_cast<std::size_t>(item)] =
            static_cast<std::int32_t>(group - groups_.data());
      }
    }
  }

  [[nodiscard]] std::vector<PackedSlot> slots_of(const std::vector<std::int32_t>& group_of) const {
    std::vector<PackedGroup> packed;
    for (const Group& group : groups_) packed.push_back(items_.group_at(group.place));
    for (std::size_t i = 0; i < group_of.size(); ++i) {
      items_.put(packed[static_cast<std::size_t>(group_of[i])], items_.dearest()[i]);
    }
    std::vector<PackedSlot> slots(num_slots());
    for (std::size_t g = 0; g < packed.size(); ++g) {
      if (packed[g].items.empty()) continue;
      PackedSlot& slot = slots[groups_[g].slot];
      slot.time = std::max(slot.time, packed[g].time);
      slot.groups.push_back(std::move(packed[g]));
    }
    std::erase_if(slots, [](const PackedSlot& slot) { return slot.groups.empty(); });
    return slots;
  }

  const SlotItems& items_;
  const Problem& problem_;
  Random random_;
  std::vector<Group> groups_;           // slot by slot
  std::vector<Nanoseconds> times_;      // of groups
  std::vector<std::size_t> firsts_;     // group of each slot
  std::vector<std::int32_t> group_of_;  // of each item
  std::vector<Nanoseconds> lengths_;    // of slots
};

}  // namespace

std::vector<PackedSlot> anneal_slots(const SlotItems& items, const std::vector<PackedSlot>& slots,
                                     Nanoseconds bound, std::int64_t num_trials) {
  return SlotAnnealing(items, slots).run(bound, num_trials);
}

}  // namespace isochron
