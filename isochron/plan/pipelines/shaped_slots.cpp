// For a time and a number of slots slot_heights() says how long each may be, with one as long as
// the longest item if need be. Longest first they are packed tightly (tight_slots.cpp): long items
// stand in long slots, and what is short is left for the ends. The least time for which everything
// finds a place is looked for, for several numbers of slots.
//
// Where tokens fill most slots, lengths are not free to choose. Then slots that waste least are
// taken as they are, but for the shortest: what is in them fills the ends.

#include "isochron/plan/pipelines/shaped_slots.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "isochron/core/order.h"
#include "isochron/plan/slots/slot_packer.h"
#include "isochron/simulate/chunk_cost.h"
#include "isochron/simulate/pipeline_time.h"

namespace isochron {

namespace {

Nanoseconds slot_time(const Problem& problem, const std::vector<DraftGroup>& slot) {
  Nanoseconds time = 0;
  for (const DraftGroup& group : slot) time = std::max(time, group_time(problem, group));
  return time;
}

std::vector<Nanoseconds> times_of(const std::vector<PackedSlot>& slots) {
  std::vector<Nanoseconds> times;
  for (const PackedSlot& slot : slots) times.push_back(slot.time);
  return times;
}

}  // namespace

ShapedSlots::ShapedSlots(const Problem& problem, const RankRoom& room, SlotHeights& heights)
    : problem_(problem),
      shape_(problem.topology().pipeline),
      room_(room),
      heights_(heights),
      items_(problem, 0),
      places_(problem),
      builder_(items_, places_),
      tight_(items_, places_, builder_),
      all_(tight_.begin(items_.dearest(), 0)),
      share_(problem.options().pass == Pass::train ? 1 : problem.model().forward_share) {
  const ItemId dearest = items_.dearest().front();
  for (std::size_t place = 0; place < items_.num_places(); ++place) {
    if (!items_.fits(place, dearest)) continue;
    longest_ = std::min(longest_, items_.cost(place, dearest) + items_.fixed(place));
  }
}

DraftSlots ShapedSlots::search(Nanoseconds bound, Nanoseconds most, bool is_even) {
  const double to_time = shape_.stages / share_;
  const double least = static_cast<double>(std::max<Nanoseconds>(1, bound)) * to_time;
  constexpr double much_longer = 4;
  best_time_ = std::min(much_longer * least, static_cast<double>(most) * to_time);
  best_.clear();
  const std::vector<std::int32_t> counts = slot_counts();
  const auto last = static_cast<std::ptrdiff_t>(counts.size()) - 1;
  if (!is_even) {
    for (const std::int32_t count : counts) static_cast<void>(is_better(count, least, 1.004));
    return std::move(best_);
  }
  // Away from a likely number to both sides, as long as that gets better or is far from the bound.
  constexpr double close = 1.04;
  constexpr double near = 1.006;
  constexpr double likely = 1.09;
  constexpr double far = 1.08;
  const auto goes_on = [&](std::ptrdiff_t place) {
    return is_better(counts[static_cast<std::size_t>(place)], close * least, near) ||
           best_time_ > far * least;
  };
  std::ptrdiff_t first = std::min<std::ptrdiff_t>(3, last);
  std::ptrdiff_t end = first + 1;
  static_cast<void>(is_found(counts[static_cast<std::size_t>(first)], likely * least));
  static_cast<void>(goes_on(first));
  for (bool is_up = true, is_down = true; is_up || is_down;) {
    is_up = is_up && first > 0 && goes_on(--first);
    is_down = is_down && end <= last && goes_on(end++);
  }
  return std::move(best_);
}

// Looks for less time than that of the best, and at least `low`, in so many slots; times within
// `near` are not told apart.
bool ShapedSlots::is_better(std::int32_t num_slots, double low, double near) {
  if (!is_found(num_slots, best_time_)) return false;
  constexpr int num_halvings = 6;
  for (int i = 0; i < num_halvings && best_time_ > low * near; ++i) {
    const double middle = (low + best_time_) / 2;
    if (!is_found(num_slots, middle)) low = middle;
  }
  return true;
}

// Whether it is not known that ranks cannot do all in this time.
bool ShapedSlots::has_room(std::int32_t num_slots, double time) const {
  const SlotRange counted{.least = num_slots, .most = num_slots};
  const double area = room_.area(time, static_cast<double>(longest_), counted);
  return area * problem_.num_ranks() >= items_.total_area();
}

std::int32_t ShapedSlots::whole_blocks(double num_slots) const {
  const std::int32_t multiple = shape_.group;
  return static_cast<std::int32_t>(std::ceil(num_slots / multiple)) * multiple;
}

// From a little more than what is best if nothing is long, down to those that hold all tokens.
std::vector<std::int32_t> ShapedSlots::slot_counts() const {
  const double work = items_.total_area() / problem_.num_ranks();
  const double full = static_cast<double>(problem_.capacity()) * problem_.num_ranks();
  const std::int32_t fewest = whole_blocks(std::max(1.0, items_.total_tokens() / full));
  constexpr std::int32_t max_slots = 128;
  std::int32_t likely = fewest;
  double least = std::numeric_limits<double>::infinity();
  for (std::int32_t count = fewest; count <= max_slots; count = whole_blocks(count + 1)) {
    const double fixed =
        count * (static_cast<double>(problem_.microbatch()) + wait_for_transfers(problem_));
    const double time = (work + fixed) * (1 + room_.bubble().share(count));
    if (time >= least) continue;
    least = time;
    likely = count;
  }
  constexpr double step = 1.25;
  constexpr std::ptrdiff_t max_tried = 10;
  std::vector<std::int32_t> counts;
  for (double count = step * likely; std::ssize(counts) < max_tried; count /= step) {
    const std::int32_t whole = whole_blocks(count);
    if (whole < fewest) break;
    if (counts.empty() || whole < counts.back()) counts.push_back(whole);
    if (whole == fewest) break;
  }
  return counts;
}

// In a time of 1.
std::vector<double> ShapedSlots::heights_for(std::int32_t num_slots, double time) {
  const std::vector<double>& free = heights_.of(num_slots);
  const double longest = static_cast<double>(longest_) / time;
  if (longest <= *std::max_element(free.begin(), free.end())) return free;
  return peak_heights(shape_, problem_.options().pass, problem_.model().forward_share, num_slots, 1,
                      longest, static_cast<double>(problem_.microbatch()) / time);
}

// Keeps the slots if they take less than the best so far.
bool ShapedSlots::is_found(std::int32_t num_slots, double time) {
  if (!has_room(num_slots, time)) return false;
  const std::vector<double> heights = heights_for(num_slots, time);
  if (heights.empty()) return false;
  std::vector<std::size_t> order(heights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return heights[a] > heights[b]; });
  std::vector<Nanoseconds> lengths;
  for (const std::size_t slot : order) {
    lengths.push_back(static_cast<Nanoseconds>(heights[slot] * time));
  }
  std::int64_t work = 0;
  TightStart packed = tight_.of_lengths(all_, lengths, {.grain = 0}, work);
  if (!packed.rest.empty()) return false;
  std::vector<PackedSlot> slots(heights.size());
  for (std::size_t i = 0; i < packed.slots.size(); ++i) {
    slots[order[i]] = std::move(packed.slots[i]);
  }
  std::erase_if(slots, [](const PackedSlot& slot) { return slot.groups.empty(); });
  places_.settle(slots);
  std::vector<Nanoseconds> times = times_of(slots);
  times.resize(static_cast<std::size_t>(whole_blocks(static_cast<double>(slots.size()))), 0);
  const double to_room = shape_.stages / share_;
  if (time_of(times) * to_room >= best_time_) return false;
  // Ranks that idle take something from others, which may make a short slot longer.
  DraftSlots draft = draft_of(slots, places_).slots;
  equalize(problem_, whole_blocks(1), draft);
  times.clear();
  for (const auto& slot : draft) times.push_back(slot_time(problem_, slot));
  const double taken = time_of(times) * to_room;
  if (taken >= best_time_) return false;
  best_time_ = taken;
  best_ = std::move(draft);
  return true;
}

// What simulate() says of slots in this order.
double ShapedSlots::time_of(const std::vector<Nanoseconds>& slots) const {
  std::vector<PassCost> costs;
  for (const Nanoseconds slot : slots) {
    costs.push_back(
        split_cost(std::max(slot, problem_.microbatch()), problem_.model().forward_share));
    if (problem_.options().pass == Pass::forward) costs.back().backward = 0;
  }
  PipelineTime pipeline(shape_, static_cast<std::int32_t>(costs.size()), problem_.options().pass);
  return static_cast<double>(pipeline.makespan(costs) - room_.transfers());
}

DraftSlots ShapedSlots::with_ends(const DraftSlots& slots) {
  std::vector<std::pair<Nanoseconds, std::size_t>> shortest_first;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    shortest_first.emplace_back(slot_time(problem_, slots[i]), i);
  }
  std::sort(shortest_first.begin(), shortest_first.end());
  DraftSlots best;
  double least = std::numeric_limits<double>::infinity();
  constexpr std::size_t most_changed = 10;
  for (std::size_t num_changed = 1; num_changed <= std::min(slots.size(), most_changed);
       num_changed += 1 + num_changed / 3) {
    std::vector<ItemId> items;
    std::vector<Nanoseconds> kept;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i >= num_changed) kept.push_back(shortest_first[i].first);
      if (i >= num_changed) continue;
      for (const DraftGroup& group : slots[shortest_first[i].second]) {
        items.insert(items.end(), group.items.begin(), group.items.end());
      }
    }
    std::sort(items.begin(), items.end(),
              [&](ItemId a, ItemId b) { return items_.position(a) < items_.position(b); });
    for (std::size_t more = 0; more <= 2 * num_changed + 2; more += 1 + more / 3) {
      const std::int32_t count = whole_blocks(static_cast<double>(slots.size() + more));
      const std::size_t num_ends = static_cast<std::size_t>(count) - kept.size();
      const std::vector<PackedSlot> ends = packed_ends(items, count, num_ends);
      if (ends.empty()) continue;
      std::vector<Nanoseconds> times = times_of(ends);
      times.insert(times.end(), kept.begin(), kept.end());
      times.resize(static_cast<std::size_t>(count), 0);
      std::vector<Nanoseconds> in_order;
      for (const std::size_t slot : small_ends(times)) in_order.push_back(times[slot]);
      const double time = time_of(in_order);
      if (time >= least) continue;
      least = time;
      best = draft_of(ends, places_).slots;
      for (std::size_t i = num_changed; i < slots.size(); ++i) {
        best.push_back(slots[shortest_first[i].second]);
      }
    }
  }
  return best;
}

// Items, dearest first, in slots as long in proportion as the shortest of so many are. Empty if
// they do not hold them.
std::vector<PackedSlot> ShapedSlots::packed_ends(const std::vector<ItemId>& items,
                                                 std::int32_t num_slots, std::size_t num_ends) {
  std::vector<double> heights = heights_.of(num_slots);
  std::sort(heights.begin(), heights.end());
  heights.resize(num_ends);
  std::reverse(heights.begin(), heights.end());
  const double sum = std::accumulate(heights.begin(), heights.end(), 0.0);
  double area = 0;
  for (const ItemId item : items) area += items_.least_area(item);
  const TightSlots::State begun = tight_.begin(items, 0);
  constexpr double most_waste = 1.3;
  for (double waste = 1.01; waste < most_waste; waste *= 1.03) {
    std::vector<Nanoseconds> lengths;
    for (const double height : heights) {
      const double length = height / sum * area * waste / problem_.num_ranks();
      lengths.push_back(static_cast<Nanoseconds>(length) + items_.fixed(0));
    }
    std::int64_t work = 0;
    TightStart packed = tight_.of_lengths(begun, lengths, {}, work);
    if (packed.rest.empty()) return std::move(packed.slots);
  }
  return {};
}

}  // namespace isochron
