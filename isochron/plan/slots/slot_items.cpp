#include "isochron/plan/slots/slot_items.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "isochron/core/radix_sort.h"

namespace isochron {

Nanoseconds total_time(const std::vector<PackedSlot>& slots) {
  Nanoseconds sum = 0;
  for (const PackedSlot& slot : slots) sum += slot.time;
  return sum;
}

SlotItems::SlotItems(const Problem& problem, std::int32_t block)
    : problem_(problem), block_(block) {
  const auto sizes = problem.sizes();
  for (const std::int32_t size : sizes) prices_.push_back(problem.cheapest_price(size));
  const auto count = static_cast<std::size_t>(problem.num_items());
  known_.resize(sizes.size());
  smallest_.resize(count);
  least_area_.resize(count);
  position_.resize(count);
  std::vector<std::uint64_t> cheapness(count);  // on the smallest groups of all
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds cost = problem.cost(prices_.front(), static_cast<ItemId>(i));
    cheapness[i] = ~static_cast<std::uint64_t>(cost);
  }
  dearest_ = ascending_positions(std::move(cheapness));
  for (std::size_t i = 0; i < count; ++i) {
    position_[static_cast<std::size_t>(dearest_[i])] = static_cast<std::int32_t>(i);
  }
  lightest_ = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const auto item = static_cast<ItemId>(i);
    std::size_t place = 0;
    while (place < sizes.size() && !fits(place, item)) ++place;
    if (place == sizes.size()) {  // only groups hold it that are not used otherwise
      place = 0;
      while (!problem.item_fits(sizes[place], item)) ++place;
    }
    smallest_[i] = static_cast<std::int32_t>(place);
    const double area = static_cast<double>(problem.cost(prices_[place], item)) * sizes[place];
    const auto item_tokens = static_cast<double>(problem.tokens(sizes[place], item));
    least_area_[i] = area;
    total_area_ += area;
    total_tokens_ += item_tokens;
    lightest_ = std::min(lightest_, area / item_tokens);
  }
}

bool SlotItems::fits(std::size_t place, ItemId item) const {
  const std::int32_t size = problem_.sizes()[place];
  return (block_ == 0 || size > block_ || block_ % size == 0) && problem_.item_fits(size, item);
}

SlotItems::Known SlotItems::find(std::size_t place, std::int32_t position) const {
  const ItemId item = dearest_[static_cast<std::size_t>(position)];
  const std::int32_t size = problem_.sizes()[place];
  const Nanoseconds cost = problem_.cost(prices_[place], item);
  const Tokens tokens = problem_.tokens(size, item);
  const double of_tokens = static_cast<double>(tokens) / size * lightest_;
  return {
      .cost = cost, .tokens = tokens, .needs = std::min(cost, static_cast<Nanoseconds>(of_tokens))};
}

std::size_t SlotItems::smallest_from(std::size_t base, ItemId item) const {
  auto place = smallest(item);
  if (base <= place) return place;
  place = base;
  // What fits a size may not fit the next, which pads more.
  while (place < prices_.size() && !fits(place, item)) ++place;
  return place;
}

std::size_t SlotItems::smallest_within(std::size_t base, Nanoseconds limit, ItemId item) const {
  const std::size_t first = smallest_from(base, item);
  if (minima_.empty()) minima_.resize(dearest_.size());
  Minima& minima = minima_[static_cast<std::size_t>(position(item))];
  auto& falling = minima.falling;
  if (minima.first != first) {
    minima.first = minima.next = first;
    falling.clear();
  }
  while ((falling.empty() || falling.back().time > limit) && minima.next < num_places()) {
    const std::size_t place = minima.next++;
    if (!fits(place, item)) continue;
    const Nanoseconds time = cost(place, item) + fixed(place);
    if (falling.empty() || time < falling.back().time) falling.push_back({time, place});
  }
  if (falling.empty()) return first;
  const auto within = std::partition_point(
      falling.begin(), falling.end(), [&](const Minimum& minimum) { return minimum.time > limit; });
  return within == falling.end() ? falling.back().place : within->place;
}

bool SlotItems::holds_all(std::size_t base) const {
  return std::all_of(dearest_.begin(), dearest_.end(),
                     [&](ItemId item) { return smallest_from(base, item) < prices_.size(); });
}

double SlotItems::overhead(std::size_t place, ItemId item) const {
  if (place == smallest(item)) return 1;
  return static_cast<double>(cost(place, item)) * problem_.sizes()[place] /
         std::max(1.0, least_area(item));
}

PackedGroup SlotItems::group_at(std::size_t place) const {
  return {.place = static_cast<std::int32_t>(place),
          .size = problem_.sizes()[place],
          .time = fixed(place)};
}

void SlotItems::put(PackedGroup& group, ItemId item) const {
  const Known& of_item = known(static_cast<std::size_t>(group.place), item);
  group.items.push_back(item);
  group.time += of_item.cost;
  group.tokens += of_item.tokens;
  group.num_sequences += problem_.num_sequences(item);
}

}  // namespace isochron
