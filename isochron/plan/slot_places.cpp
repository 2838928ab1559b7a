#include "isochron/plan/slot_places.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "isochron/plan/slots.h"

namespace isochron {

namespace {

bool fits_by_sum(const Problem& problem) {
  if (!problem.is_everywhere()) return false;
  if (!problem.is_aligned() || problem.sizes().size() == 1) return true;
  const auto sizes = problem.sizes();
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return false;
  }
  return problem.num_ranks() % sizes.back() == 0;
}

}  // namespace

SlotPlaces::SlotPlaces(const Problem& problem)
    : problem_(problem),
      is_simple_(fits_by_sum(problem)),
      is_alike_(!problem.has_speeds() && has_one_price(problem)) {}

std::vector<std::int32_t> SlotPlaces::find(const std::vector<std::int32_t>& sizes) const {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<bool> is_taken(static_cast<std::size_t>(problem_.num_ranks()), false);
  std::vector<std::int32_t> places(sizes.size(), -1);
  for (const std::size_t i : order) {
    const std::int32_t size = sizes[i];
    const std::int32_t step = problem_.first_step(size);
    std::int32_t best = -1;
    Nanoseconds best_fixed = std::numeric_limits<Nanoseconds>::max();
    for (std::int32_t first = 0; first + size <= problem_.num_ranks(); first += step) {
      bool is_free = true;
      for (std::int32_t r = first; r < first + size && is_free; ++r) {
        is_free = !is_taken[static_cast<std::size_t>(r)];
      }
      if (!is_free) continue;
      const PriceId price = problem_.price_of({.first = first, .size = size});
      if (price < 0) continue;
      // The fixed part tells the link; the first place with the cheapest one.
      if (problem_.price(price).fixed < best_fixed) {
        best = first;
        best_fixed = problem_.price(price).fixed;
      }
      if (best_fixed == problem_.price(problem_.cheapest_price(size)).fixed) break;
    }
    if (best < 0) return places_in_row(sizes, order);
    places[i] = best;
    for (std::int32_t r = best; r < best + size; ++r) is_taken[static_cast<std::size_t>(r)] = true;
  }
  return places;
}

bool SlotPlaces::holds(const std::vector<PackedGroup>& groups, const PackedGroup& more) const {
  std::vector<std::int32_t> sizes;
  for (const PackedGroup& group : groups) sizes.push_back(group.size);
  sizes.push_back(more.size);
  return !find(sizes).empty();
}

std::pair<std::vector<DraftGroup>, Nanoseconds> SlotPlaces::placed(const PackedSlot& slot) const {
  std::vector<std::int32_t> sizes;
  for (const PackedGroup& group : slot.groups) sizes.push_back(group.size);
  const std::vector<std::int32_t> places = find(sizes);
  std::vector<DraftGroup> groups;
  Nanoseconds slowest = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    groups.push_back(
        {.ranks = {.first = places[i], .size = sizes[i]}, .items = slot.groups[i].items});
    slowest = std::max(slowest, group_time(problem_, groups.back()));
  }
  return {std::move(groups), slowest};
}

void SlotPlaces::settle(std::vector<PackedSlot>& slots) const {
  if (is_alike_) return;
  for (PackedSlot& slot : slots) slot.time = placed(slot).second;
}

// One after the other, in this order: fits where groups may start anywhere.
std::vector<std::int32_t> SlotPlaces::places_in_row(const std::vector<std::int32_t>& sizes,
                                                    const std::vector<std::size_t>& order) const {
  std::vector<std::int32_t> places(sizes.size(), -1);
  std::int32_t next = 0;
  for (const std::size_t i : order) {
    const RankRange ranks{.first = next, .size = sizes[i]};
    const bool is_allowed = next + sizes[i] <= problem_.num_ranks() &&
                            next % problem_.first_step(sizes[i]) == 0 &&
                            problem_.price_of(ranks) >= 0;
    if (!is_allowed) return {};
    places[i] = next;
    next += sizes[i];
  }
  return places;
}

}  // namespace isochron
