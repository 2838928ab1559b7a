// A slot is given up by moving its items, dearest first, each to the group of another slot that
// gets it at the least price in time, and of those to the one that has the least room left; where
// some find none like that, all of them to the one with the least room. Groups of the smallest size
// stand where ranks idle. Moves of single items never find that: all but the last of them make the
// step longer.

#include "isochron/plan/slots/fewer_slots.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace isochron {

namespace {

class FewerSlots {
 public:
  enum class By { time, room };

  FewerSlots(const SlotItems& items, const SlotPlaces& places)
      : items_(items), problem_(items.problem()), places_(places) {}

  // All slots but this one, with its items; none if they find no room within the time.
  std::optional<std::vector<PackedSlot>> without(const std::vector<PackedSlot>& slots,
                                                 std::size_t given_up, By by,
                                                 std::int64_t& work) const {
    const Nanoseconds most = total_time(slots);
    std::vector<PackedSlot> others;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      if (s != given_up) others.push_back(with_idle_cells(slots[s]));
    }
    std::vector<ItemId> moved;
    for (const PackedGroup& group : slots[given_up].groups) {
      moved.insert(moved.end(), group.items.begin(), group.items.end());
    }
    if (!have_room(others, moved)) return std::nullopt;
    std::sort(moved.begin(), moved.end(),
              [&](ItemId a, ItemId b) { return items_.position(a) < items_.position(b); });
    Nanoseconds time = total_time(others);
    for (const ItemId item : moved) {
      if (problem_.is_alone(item)) return std::nullopt;
      const auto [slot, group] = best_group(others, item, by, work);
      if (group == nullptr) return std::nullopt;
      items_.put(*group, item);
      time += std::max<Nanoseconds>(0, group->time - slot->time);
      slot->time = std::max(slot->time, group->time);
      if (time >= most) return std::nullopt;
    }
    for (PackedSlot& slot : others) {
      std::erase_if(slot.groups, [](const PackedGroup& group) { return group.items.empty(); });
    }
    places_.settle(others);
    if (total_time(others) >= most) return std::nullopt;
    return others;
  }

 private:
  PackedSlot with_idle_cells(PackedSlot slot) const {
    const std::int32_t idle = places_.num_beside(slot, problem_.sizes().front());
    slot.groups.resize(slot.groups.size() + static_cast<std::size_t>(idle), items_.group_at(0));
    return slot;
  }

  // By the sum of their tokens, which says so at once where slots are full.
  bool have_room(const std::vector<PackedSlot>& slots, const std::vector<ItemId>& moved) const {
    Tokens room = 0;
    for (const PackedSlot& slot : slots) {
      for (const PackedGroup& group : slot.groups) {
        room += problem_.capacity() * group.size - group.tokens;
      }
    }
    for (const ItemId item : moved) room -= items_.tokens(items_.smallest(item), item);
    return room >= 0;
  }

  bool has_room(const PackedGroup& group, ItemId item) const {
    const auto place = static_cast<std::size_t>(group.place);
    if (!items_.fits(place, item)) return false;
    if (!group.items.empty() && problem_.is_alone(group.items.front())) return false;
    const std::int32_t most = problem_.options().max_sequences;
    return group.tokens + items_.tokens(place, item) <= problem_.capacity() * group.size &&
           (most == 0 || group.num_sequences + problem_.num_sequences(item) <= most);
  }

  std::pair<PackedSlot*, PackedGroup*> best_group(std::vector<PackedSlot>& slots, ItemId item,
                                                  By by, std::int64_t& work) const {
    std::pair<PackedSlot*, PackedGroup*> best(nullptr, nullptr);
    std::pair<Nanoseconds, Tokens> least;
    for (PackedSlot& slot : slots) {
      const PackedGroup* last = nullptr;
      for (PackedGroup& group : slot.groups) {
        const bool is_same = last != nullptr && last->items.empty() && group.items.empty();
        last = &group;
        if (is_same) continue;  // as the idle cell before it
        --work;
        if (!has_room(group, item)) continue;
        const auto place = static_cast<std::size_t>(group.place);
        const Nanoseconds time = group.time + items_.cost(place, item);
        const Tokens room =
            problem_.capacity() * group.size - group.tokens - items_.tokens(place, item);
        const Nanoseconds longer = std::max<Nanoseconds>(0, time - slot.time);
        const std::pair score(by == By::time ? longer : 0, room);
        if (best.second != nullptr && score >= least) continue;
        least = score;
        best = {&slot, &group};
      }
    }
    return best;
  }

  const SlotItems& items_;
  const Problem& problem_;
  const SlotPlaces& places_;
};

}  // namespace

std::vector<PackedSlot> fewer_slots(const SlotItems& items, const SlotPlaces& places,
                                    std::vector<PackedSlot> slots, std::int64_t& work) {
  const FewerSlots search(items, places);
  for (bool is_changed = true; is_changed && slots.size() > 1;) {
    is_changed = false;
    std::stable_sort(slots.begin(), slots.end(),
                     [](const PackedSlot& a, const PackedSlot& b) { return a.time < b.time; });
    for (std::size_t s = 0; s < slots.size() && !is_changed && work > 0; ++s) {
      for (const auto by : {FewerSlots::By::time, FewerSlots::By::room}) {
        auto fewer = search.without(slots, s, by, work);
        if (!fewer) continue;
        slots = *std::move(fewer);
        is_changed = true;
        break;
      }
    }
  }
  return slots;
}

}  // namespace isochron
