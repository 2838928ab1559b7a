// The longer the longest slot of a rank, the less work the rank can do in the time of a step, and
// the more slots there are, the more has to be paid (rank_room.cpp). All ranks have as many.
//
// For a time and a number of slots an item takes a part of a rank: its area over the most that a
// rank with a slot as long as the item can do. All parts together are no more than there are ranks,
// and what is beside the longest item has its room. Where ranks wait for each other all of them
// have the longest slot. The least time for some number of slots is the bound.

#include "isochron/plan/pipelines/room_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace isochron {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-11;  // of sums in double: more than all their roundings

class RoomBound {
 public:
  explicit RoomBound(const RoomQuestion& question)
      : question_(question), items_(question.choices.size()) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      double least = infinite;
      for (const Choice& choice : question.choices[i]) {
        double area = 0;
        for (const Choice::Part& part : choice.all()) {
          area += std::max(0.0, part.area);
          parts_of_choices_.push_back({.area = part.area, .length_class = class_of(part.time)});
        }
        flat_choices_.push_back({.area = area, .end = parts_of_choices_.size()});
        least = std::min(least, choice.area);
      }
      flat_choices_.back().ends_item = true;
      least_areas_.push_back(least);
      area_ += least;
    }
    least_of_longest_ = least_areas_.front();
    std::vector<std::size_t> place_of;  // among the classes that some part has
    constexpr auto none = std::numeric_limits<std::size_t>::max();
    for (const ChoicePart& part : parts_of_choices_) {
      if (part.length_class >= place_of.size()) place_of.resize(part.length_class + 1, none);
      place_of[part.length_class] = 0;
    }
    for (std::size_t length_class = 0; length_class < place_of.size(); ++length_class) {
      if (place_of[length_class] == none) continue;
      place_of[length_class] = shortest_.size();
      const double doublings = (static_cast<double>(length_class) - 1) / classes_per_doubling;
      shortest_.push_back(length_class == 0 ? 0 : std::exp2(doublings) * (1 - slack));
    }
    for (ChoicePart& part : parts_of_choices_) part.length_class = place_of[part.length_class];
    parts_.resize(shortest_.size());
  }

  double bound(double at_least) {
    const std::vector<SlotRange> ranges = slot_ranges();
    std::vector<double> least_times;
    for (const SlotRange& num_slots : ranges) {
      const double work = area_ / question_.ranks + question_.fixed * num_slots.least;
      const double time = work * (1 + question_.room.bubble().share(num_slots.most));
      least_times.push_back(std::max(at_least, time));
    }
    // Neighbours are judged together first: most of them are far from the best.
    constexpr std::size_t num_together = 6;
    enum class Judged { not_yet, may_be_better, worse };
    std::vector<Judged> judged(ranges.size() / num_together + 1, Judged::not_yet);
    double best = infinite;
    for (const std::size_t i : far_apart(least_times)) {
      if (least_times[i] >= best) continue;
      Judged& neighbours = judged[i / num_together];
      if (neighbours == Judged::not_yet && best < infinite) {
        const std::size_t first = i / num_together * num_together;
        const std::size_t last = std::min(first + num_together, ranges.size()) - 1;
        const SlotRange all{.least = ranges[first].least, .most = ranges[last].most};
        neighbours = is_enough(best * (1 - little), all) ? Judged::may_be_better : Judged::worse;
      }
      if (neighbours == Judged::worse) continue;
      best = std::min(best, least_time_for(ranges[i], least_times[i], best));
      if (best <= at_least) return 0;
    }
    return best == infinite ? 0 : best * (1 - little);
  }

 private:
  static constexpr double little = 1e-7;  // of a time: what is not looked at closer

  // Lengths by classes, each with the room beside its shortest.
  static constexpr double classes_per_doubling = 24;
  static std::size_t class_of(double length) {
    return length <= 1 ? 0 : static_cast<std::size_t>(std::log2(length) * classes_per_doubling) + 1;
  }

  // The least first, then the others such that those which follow each other differ: where the
  // times of neighbours fall one after the other, few of them are the best so far.
  static std::vector<std::size_t> far_apart(const std::vector<double>& times) {
    const std::size_t count = times.size();
    const auto least =
        static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
    std::size_t step = count * 5 / 8 + 1;
    while (std::gcd(step, count) > 1) ++step;
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < count; ++k) order.push_back((least + k * step) % count);
    return order;
  }

  // Every number of slots is in one of them; what differs little is judged together.
  std::vector<SlotRange> slot_ranges() const {
    const std::int32_t step = question_.slots_per_block;
    std::vector<SlotRange> ranges;
    for (std::int32_t least = step; least <= question_.max_slots;) {
      constexpr std::int32_t parts = 24;
      const std::int32_t most = least + least / step / parts * step;
      ranges.push_back({.least = least, .most = most});
      least = most + step;
    }
    return ranges;
  }

  // No less than `low`, which is too short or just enough; `high` if a little less is too short.
  double least_time_for(SlotRange num_slots, double low, double high) {
    if (high < infinite && !is_enough(high * (1 - little), num_slots)) return high;
    if (is_enough(low, num_slots)) return low;
    if (high == infinite) {
      high = low;
      do {
        high *= 1.25;
      } while (!is_enough(high, num_slots));
    }
    constexpr int num_halvings = 11;
    for (int i = 0; i < num_halvings; ++i) {
      const double middle = (low + high) / 2;
      (is_enough(middle, num_slots) ? high : low) = middle;
    }
    return low;
  }

  bool is_enough(double time, SlotRange num_slots) {
    if (question_.is_paced && !is_enough_beside_longest(time, num_slots)) return false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const double area = question_.room.area(time, shortest_[i], num_slots);
      parts_[i] = area > 0 ? 1 / area : infinite;
    }
    const double most_ranks = question_.ranks * (1 + slack);
    const double least_part = parts_.front();
    double ranks = 0;
    double of_item = infinite;
    std::size_t item = 0;
    std::size_t part = 0;
    for (const FlatChoice& choice : flat_choices_) {
      // What is worse even if all of it is short does not matter.
      if (choice.area * least_part < of_item) {
        double of_choice = 0;
        for (; part < choice.end; ++part) {
          const auto& [area, length_class] = parts_of_choices_[part];
          of_choice += area > 0 ? area * parts_[length_class] : 0;
        }
        of_item = std::min(of_item, of_choice);
      }
      part = choice.end;
      if (!choice.ends_item) continue;
      items_[item] = {.ranks = of_item, .area = least_areas_[item]};
      ++item;
      ranks += of_item;
      if (ranks > most_ranks) return false;
      of_item = infinite;
    }
    return has_room_beside_longest(time, num_slots, ranks);
  }

  // On the ranks of the longest item all others have no more room than that one. At best those
  // that take the most of a rank for their area are there.
  bool has_room_beside_longest(double time, SlotRange num_slots, double ranks) {
    const auto is_less = [](const ItemPart& a, const ItemPart& b) {
      return a.per_area < b.per_area;
    };
    auto heap_end = items_.end();  // those behind it ascend: few of them are asked for
    bool is_heap = false;
    for (const Choice& choice : question_.choices.front()) {
      double left = choice.size * question_.room.area(time, choice.time(), num_slots);
      double room_beside = std::max(0.0, question_.ranks - choice.size * question_.least_rank);
      if (left <= 0) continue;
      if (room_beside * (1 + slack) >= ranks) return true;
      if (!is_heap) {
        for (ItemPart& item : items_) {
          item.per_area = item.area > 0 ? item.ranks / item.area : infinite;
        }
        std::make_heap(items_.begin(), items_.end(), is_less);
        is_heap = true;
      }
      for (auto item = items_.end(); item != items_.begin();) {
        if (left <= 0 || room_beside >= ranks) break;
        if (item-- == heap_end) std::pop_heap(items_.begin(), heap_end--, is_less);
        room_beside += item->ranks * std::min(1.0, item->area > 0 ? left / item->area : 1.0);
        left -= item->area;
      }
      if (room_beside * (1 + slack) >= ranks) return true;
    }
    return false;
  }

  bool is_enough_beside_longest(double time, SlotRange num_slots) const {
    const auto& choices = question_.choices.front();
    return std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
      const double room = question_.room.area(time, choice.time(), num_slots);
      return room * question_.ranks * (1 + slack) >= area_ - least_of_longest_ + choice.area;
    });
  }

  struct ChoicePart {
    double area = 0;
    std::size_t length_class = 0;
  };
  struct FlatChoice {
    double area = 0;
    std::size_t end = 0;  // of its parts
    bool ends_item = false;
  };
  struct ItemPart {
    double ranks = infinite;
    double area = infinite;
    double per_area = 0;  // ranks
  };

  const RoomQuestion& question_;
  std::vector<ItemPart> items_;
  std::vector<FlatChoice> flat_choices_;      // of all items
  std::vector<ChoicePart> parts_of_choices_;  // of all of them
  std::vector<double> least_areas_;           // of the items
  std::vector<double> shortest_;              // of each class that some part has, ascending
  std::vector<double> parts_;                 // of a rank, for a unit of area in each class
  double area_ = 0;                           // least, of all bundles
  double least_of_longest_ = 0;
};

}  // namespace

double room_bound(const RoomQuestion& question, double at_least) {
  return question.choices.empty() ? 0 : RoomBound(question).bound(at_least);
}

}  // namespace isochron
