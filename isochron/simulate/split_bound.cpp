// Every order has a largest slot, and runs each of the others before it or after it. A slot cannot
// be in front to make the way up to the largest easy and behind it to make the way down easy.
//
// The paths are those of order_bound.cpp: down with slot k over d stages, which misses the d
// backwards before k, and up with slot j, which misses the d forwards after j. Of the slots in
// front let k be the first of at least some size. Those before it are smaller and in front, so the
// path misses no more than the d largest of these. If q + 1 slots come before k, then a path may
// also go down and up with the first of all and then down with k: over min(q, d) stages that misses
// the slots between. Few slots before k make the first path long, many the second. Behind the
// largest slot the same holds with forward and backward, first and last exchanged.
//
// Which slots are in front is found best-first: an open one counts on both sides, and the split
// whose bound is the least decides one more, until nothing open counts or the work is done. Then
// that least bound holds for all splits.

#include "isochron/simulate/split_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "isochron/core/int128.h"
#include "isochron/simulate/largest_sum.h"

namespace isochron {

namespace {

constexpr Nanoseconds infinite = std::numeric_limits<Nanoseconds>::max();
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

enum class Part : std::uint8_t { open, front, back };

struct Split {
  Nanoseconds gain = 0;     // of the longest path over the work of a stage, at least
  std::size_t open = none;  // slot to decide next; none if nothing open counts
  std::vector<Part> part_of = {};
};

// What a slot adds where a path turns with it, and what the path loses where it misses the slot.
struct Turns {
  const std::vector<Nanoseconds>& ways;
  const std::vector<Nanoseconds>& missed;
};

struct Turn {
  Nanoseconds gain = std::numeric_limits<Nanoseconds>::min();
  std::size_t place = 0;  // among the slots of the side
};

// Over `depth` stages, the best of the slots of a side, smallest first.
Turn single_turn(const Turns& turns, const std::vector<std::size_t>& side, std::size_t depth) {
  Turn best;
  Nanoseconds missed = 0;
  for (std::size_t i = 0; i < side.size(); ++i) {
    const Nanoseconds gain = static_cast<Nanoseconds>(depth) * turns.ways[side[i]] - missed;
    if (gain > best.gain) best = {.gain = gain, .place = i};
    missed += turns.missed[side[i]];
    if (i >= depth) missed -= turns.missed[side[i - depth]];
  }
  return best;
}

// The same with a turn of the outermost slot before it, if that is longer.
Turn double_turn(const Turns& turns, const std::vector<std::size_t>& side, std::size_t depth) {
  const auto stages = static_cast<Nanoseconds>(depth);
  const std::size_t outermost = side.front();
  Turn best = {.gain = stages * turns.ways[outermost], .place = 0};
  for (std::size_t i = 1; i < side.size(); ++i) {
    const Nanoseconds way = turns.ways[side[i]];
    Nanoseconds missed = 0;
    Nanoseconds between = 0;
    Nanoseconds least = infinite;
    for (std::size_t q = 0; q < i && q <= depth; ++q) {
      if (q < depth) missed += turns.missed[side[i - 1 - q]];
      if (q > 0) between += turns.ways[side[i - q]] + turns.missed[side[i - q]];
      const Nanoseconds once = stages * way - missed;
      const Nanoseconds twice = stages * turns.ways[outermost] +
                                static_cast<Nanoseconds>(q) * (turns.missed[outermost] + way) -
                                between;
      least = std::min(least, std::max(once, twice));
    }
    if (least > best.gain) best = {.gain = least, .place = i};
  }
  return best;
}

class SplitSearch {
 public:
  // Slots by size, each as long as the one before it in both directions.
  SplitSearch(std::vector<Nanoseconds> forwards, std::vector<Nanoseconds> backwards,
              std::size_t depth)
      : forwards_(std::move(forwards)), backwards_(std::move(backwards)), depth_(depth) {}

  Nanoseconds least_gain(std::int64_t max_work) {
    const auto is_more = [](const Split& a, const Split& b) { return a.gain > b.gain; };
    std::priority_queue<Split, std::vector<Split>, decltype(is_more)> splits(is_more);
    splits.push(judged({.part_of = std::vector<Part>(forwards_.size(), Part::open)}));
    const auto work_per_split = static_cast<std::int64_t>(forwards_.size() * (2 * depth_ + 8));
    for (std::int64_t work = 0; work < max_work; work += 2 * work_per_split) {
      const Split least = splits.top();
      if (least.open == none) return least.gain;
      splits.pop();
      for (const Part part : {Part::front, Part::back}) {
        Split next = least;
        next.part_of[least.open] = part;
        splits.push(judged(std::move(next)));
      }
    }
    return splits.top().gain;
  }

 private:
  Split judged(Split split) {
    const std::size_t largest = forwards_.size() - 1;
    front_.clear();
    back_.clear();
    for (std::size_t slot = 0; slot < forwards_.size(); ++slot) {
      if (slot == largest || split.part_of[slot] != Part::back) front_.push_back(slot);
      if (slot == largest || split.part_of[slot] != Part::front) back_.push_back(slot);
    }
    const Turns down = {.ways = forwards_, .missed = backwards_};
    const Turns up = {.ways = backwards_, .missed = forwards_};
    Nanoseconds best = std::numeric_limits<Nanoseconds>::min();
    Turn best_down;
    Turn best_up;
    std::size_t best_depth = 0;
    const auto offer = [&](Turn first, Turn second, Nanoseconds more, std::size_t depth) {
      if (first.gain + second.gain + more <= best) return;
      best = first.gain + second.gain + more;
      best_down = first;
      best_up = second;
      best_depth = depth;
    };
    const Nanoseconds ends = least_ends();
    for (std::size_t depth = 1; depth <= depth_; ++depth) {
      offer(single_turn(down, front_, depth), single_turn(up, back_, depth),
            static_cast<Nanoseconds>(depth_ - depth) * ends, depth);
    }
    offer(double_turn(down, front_, depth_), double_turn(up, back_, depth_), 0, depth_);
    offer({.gain = joint_gain(split.part_of), .place = front_.size() - 1},
          {.gain = 0, .place = back_.size() - 1}, 0, depth_);
    split.gain = std::max(split.gain, best);
    split.open = open_slot(split.part_of, best_down.place, best_up.place, best_depth);
    return split;
  }

  // A forward of the first slot and a backward of the last, which are not the same.
  [[nodiscard]] Nanoseconds least_ends() const {
    Nanoseconds least = infinite;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, front_.size()); ++i) {
      for (std::size_t j = 0; j < std::min<std::size_t>(2, back_.size()); ++j) {
        if (front_[i] == back_[j]) continue;
        least = std::min(least, forwards_[front_[i]] + backwards_[back_[j]]);
      }
    }
    return least;
  }

  // Of the largest slot on both sides, where no open slot is missed on both. Sorted by the
  // difference of what they lose, those missed before are best taken from one end and those missed
  // after from the other.
  [[nodiscard]] Nanoseconds joint_gain(const std::vector<Part>& part_of) {
    const std::size_t largest = forwards_.size() - 1;
    missed_.clear();
    for (std::size_t slot = 0; slot < largest; ++slot) {
      missed_.emplace_back(part_of[slot] == Part::back ? 0 : backwards_[slot],
                           part_of[slot] == Part::front ? 0 : forwards_[slot]);
    }
    std::stable_sort(missed_.begin(), missed_.end(), [](const auto& a, const auto& b) {
      return a.first - a.second > b.first - b.second;
    });
    before_sums_.assign(1, 0);
    LargestSum<Nanoseconds> before(depth_);
    for (const auto& missed : missed_) before_sums_.push_back(before.add(missed.first));
    Nanoseconds most = before_sums_.back();
    LargestSum<Nanoseconds> after(depth_);
    for (std::size_t i = missed_.size(); i-- > 0;) {
      most = std::max(most, before_sums_[i] + after.add(missed_[i].second));
    }
    return static_cast<Nanoseconds>(depth_) * (forwards_[largest] + backwards_[largest]) - most;
  }

  // The largest open slot that the best paths miss on both sides, otherwise any open one of those
  // that they meet or miss.
  [[nodiscard]] std::size_t open_slot(const std::vector<Part>& part_of, std::size_t down,
                                      std::size_t up, std::size_t depth) const {
    const std::size_t largest = forwards_.size() - 1;
    const auto is_open = [&](std::size_t slot) {
      return slot != largest && part_of[slot] == Part::open;
    };
    const auto window = [&](const std::vector<std::size_t>& side, std::size_t place) {
      const auto last = side.begin() + static_cast<std::ptrdiff_t>(place);
      return std::pair(last - static_cast<std::ptrdiff_t>(std::min(place, depth)), last);
    };
    const auto [first_down, last_down] = window(front_, down);
    const auto [first_up, last_up] = window(back_, up);
    for (auto slot = last_down; slot != first_down;) {
      --slot;
      if (is_open(*slot) && std::binary_search(first_up, last_up, *slot)) return *slot;
    }
    if (is_open(front_[down])) return front_[down];
    if (is_open(back_[up])) return back_[up];
    for (auto slot = last_down; slot != first_down;) {
      if (is_open(*--slot)) return *slot;
    }
    for (auto slot = last_up; slot != first_up;) {
      if (is_open(*--slot)) return *slot;
    }
    if (is_open(front_.front())) return front_.front();
    return is_open(back_.front()) ? back_.front() : none;
  }

  std::vector<Nanoseconds> forwards_;
  std::vector<Nanoseconds> backwards_;
  std::size_t depth_;
  std::vector<std::size_t> front_;  // slots that may be there, smallest first, and the largest
  std::vector<std::size_t> back_;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> missed_;
  std::vector<Nanoseconds> before_sums_;
};

}  // namespace

Nanoseconds split_bound(const ChunkCosts& costs, const PipelineShape& shape,
                        std::int64_t max_work) {
  const std::size_t num_slots = costs.num_rows();
  if (num_slots < 2) return 0;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> slots;  // forward and backward of one stage
  Int128 work = 0;
  for (std::size_t slot = 0; slot < num_slots; ++slot) {
    slots.emplace_back(costs.row(slot)[costs.column(0, false)],
                       costs.row(slot)[costs.column(0, true)]);
    work += Int128{slots.back().first} + slots.back().second;
  }
  // Gains of both sides and the ends add up to at most three times the work of all stages.
  if ((work + 2 * Int128{shape.transfer_ns}) * shape.stages > max_total_cost / 4) return 0;
  std::sort(slots.begin(), slots.end());
  std::vector<Nanoseconds> forwards;
  std::vector<Nanoseconds> backwards;
  for (const auto& [forward, backward] : slots) {
    if (!backwards.empty() && backward < backwards.back()) return 0;
    forwards.push_back(forward);
    backwards.push_back(backward);
  }
  const auto depth = static_cast<std::size_t>(shape.stages - 1);
  return static_cast<Nanoseconds>(work) +
         SplitSearch(std::move(forwards), std::move(backwards), depth).least_gain(max_work) +
         shape.transfer_ns * 2 * (shape.stages - 1);
}

}  // namespace isochron
