#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "isochron/plan/slots/slot_items.h"

namespace isochron {

// Groups by the room they have: of the time and of the tokens, at the lightest item's price for
// those, what there is less of.
class OpenGroups {
 public:
  explicit OpenGroups(const SlotItems& items)
      : items_(items), by_room_(items.num_places()), most_room_(items.num_places(), none) {}

  void add(const PackedGroup& group, Nanoseconds time_left, std::int32_t id) {
    Rooms& groups = by_room_[static_cast<std::size_t>(group.place)];
    const std::pair entry(room_of(group, time_left), id);
    Nanoseconds& most = most_room_[static_cast<std::size_t>(group.place)];
    most = std::max(most, entry.first);
    if (spare_.empty()) {
      groups.insert(entry);
      return;
    }
    spare_.value() = entry;
    groups.insert(std::move(spare_));
  }

  [[nodiscard]] bool has_any(std::size_t place) const { return !by_room_[place].empty(); }

  // Places of the sizes of all groups, ascending.
  [[nodiscard]] std::vector<std::size_t> places() const {
    std::vector<std::size_t> result;
    for (std::size_t place = 0; place < by_room_.size(); ++place) {
      if (has_any(place)) result.push_back(place);
    }
    return result;
  }

  // Whether a group of this size has room enough by what is kept of it.
  [[nodiscard]] bool may_take(std::size_t place, ItemId item) const {
    return most_room_[place] != none && most_room_[place] >= items_.known(place, item).needs;
  }

  // The group of this size with the least room that takes the item, removed; -1 if there is none.
  template <class GroupOf, class TimeLeftOf>
  std::int32_t take(std::size_t place, ItemId item, GroupOf group_of, TimeLeftOf time_left_of) {
    Rooms& groups = by_room_[place];
    if (groups.empty()) return -1;
    const Problem& problem = items_.problem();
    const std::int32_t size = problem.sizes()[place];
    const std::int32_t max_sequences = problem.options().max_sequences;
    const auto [time, tokens, needs] = items_.known(place, item);
    if (most_room_[place] < needs) return -1;
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
      spare_ = groups.extract(it);
      most_room_[place] = groups.empty() ? none : groups.rbegin()->first;
      return id;
    }
    return -1;
  }

 private:
  using Rooms = std::set<std::pair<Nanoseconds, std::int32_t>>;

  static constexpr Nanoseconds none = std::numeric_limits<Nanoseconds>::min();

  [[nodiscard]] Nanoseconds room_of(const PackedGroup& group, Nanoseconds time_left) const {
    const Tokens left = items_.problem().capacity() * group.size - group.tokens;
    const double by_tokens = static_cast<double>(left) / group.size * items_.lightest();
    return std::min(time_left, static_cast<Nanoseconds>(std::min(by_tokens, 4e18)));
  }

  const SlotItems& items_;
  std::vector<Rooms> by_room_;
  std::vector<Nanoseconds> most_room_;  // of each size; none: there is no group
  Rooms::node_type spare_;              // of the group that was taken last, for the next one
};

}  // namespace isochron
