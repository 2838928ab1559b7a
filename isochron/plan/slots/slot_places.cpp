#include "isochron/plan/slots/slot_places.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "isochron/plan/draft_slots.h"

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

std::vector<std::int32_t> sizes_of(const PackedSlot& slot) {
  std::vector<std::int32_t> sizes;
  sizes.reserve(slot.groups.size());
  for (const PackedGroup& group : slot.groups) sizes.push_back(group.size);
  return sizes;
}

}  // namespace

SlotPlaces::SlotPlaces(const Problem& problem)
    : problem_(problem),
      is_simple_(fits_by_sum(problem)),
      is_alike_(!problem.has_speeds() && has_one_price(problem, problem.sizes())) {
  const auto& context = problem.model().context;
  if (!is_simple_ || is_alike_ || problem.is_aligned() || context.empty() ||
      !problem.order().has_one_exchange) {
    return;
  }
  const auto& links = context.front().links;
  if (links.size() > 1 && links.front().max_ranks < problem.num_ranks()) {
    block_ = static_cast<std::int32_t>(links.front().max_ranks);
  }
}

std::vector<std::int32_t> SlotPlaces::find(const std::vector<std::int32_t>& sizes) const {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<bool> is_taken(static_cast<std::size_t>(problem_.num_ranks()), false);
  std::vector<std::int32_t> places(sizes.size(), -1);
  std::int32_t last_size = 0;
  std::int32_t next = 0;  // no cheapest place of this size is free before it
  for (const std::size_t i : order) {
    const std::int32_t size = sizes[i];
    const std::int32_t step = problem_.first_step(size);
    if (size != last_size) next = 0;
    last_size = size;
    const Nanoseconds cheapest = problem_.price(problem_.cheapest_price(size)).fixed;
    // The fixed part tells the link: the first place with the cheapest one that is free.
    std::int32_t best = -1;
    Nanoseconds best_fixed = std::numeric_limits<Nanoseconds>::max();
    const auto look = [&](std::int32_t from) {
      for (std::int32_t first = from; first + size <= problem_.num_ranks(); first += step) {
        bool is_free = true;
        for (std::int32_t r = first; r < first + size && is_free; ++r) {
          is_free = !is_taken[static_cast<std::size_t>(r)];
        }
        if (!is_free) continue;
        const PriceId price = problem_.price_of({.first = first, .size = size});
        if (price < 0) continue;
        if (problem_.price(price).fixed < best_fixed) {
          best = first;
          best_fixed = problem_.price(price).fixed;
        }
        if (best_fixed == cheapest) {
          next = best + step;
          return;
        }
      }
    };
    look(next);
    if (best_fixed != cheapest && next > 0) look(0);
    if (best < 0) return places_in_row(sizes, order);
    places[i] = best;
    for (std::int32_t r = best; r < best + size; ++r) is_taken[static_cast<std::size_t>(r)] = true;
  }
  return places;
}

std::pair<std::vector<DraftGroup>, Nanoseconds> SlotPlaces::placed(const PackedSlot& slot) const {
  const std::vector<std::int32_t> sizes = sizes_of(slot);
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
  const bool is_one_price = !problem_.has_speeds() && problem_.order().has_one_exchange;
  for (PackedSlot& slot : slots) {
    if (!is_one_price) {
      slot.time = placed(slot).second;
      continue;
    }
    // Groups at the cheapest place of their size take what they were packed for.
    const std::vector<std::int32_t> places = find(sizes_of(slot));
    slot.time = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const PackedGroup& group = slot.groups[i];
      const RankRange ranks{.first = places[i], .size = group.size};
      const bool is_cheapest = problem_.price_of(ranks) == problem_.cheapest_price(group.size);
      slot.time =
          std::max(slot.time, is_cheapest ? group.time : problem_.group_cost(ranks, group.items));
    }
  }
}

SlotRoom::SlotRoom(const SlotPlaces& places, std::int32_t num_ranks)
    : places_(places), num_ranks_(num_ranks), num_free_(num_ranks) {
  if (const std::int32_t block = places.block(); block > 0) {
    used_.resize(static_cast<std::size_t>((num_ranks + block - 1) / block), 0);
  }
}

// Ranks of a block that are free beside a row of so many ranks; negative if they overlap.
std::int32_t SlotRoom::free_in(std::size_t block, std::int32_t row) const {
  const std::int32_t first = static_cast<std::int32_t>(block) * places_.block();
  const std::int32_t size = std::min(places_.block(), num_ranks_ - first);
  return size - used_[block] - std::clamp(row - first, 0, size);
}

bool SlotRoom::take(std::int32_t size) {
  if (size > num_free_) return false;
  if (!places_.is_simple()) {
    sizes_.push_back(size);
    if (places_.find(sizes_).empty()) {
      sizes_.pop_back();
      return false;
    }
  } else if (!used_.empty() && size > places_.block()) {
    for (std::size_t block = 0; block < used_.size(); ++block) {
      if (free_in(block, row_ + size) < 0) return false;
    }
    row_ += size;
  } else if (!used_.empty() && size > 1) {
    std::size_t best = used_.size();
    for (std::size_t block = used_.size(); block-- > 0;) {
      const std::int32_t num_free = free_in(block, row_);
      if (num_free < size) continue;
      if (best == used_.size() || num_free < free_in(best, row_)) best = block;
    }
    if (best == used_.size()) return false;
    used_[best] += size;
  }
  num_free_ -= size;
  return true;
}

std::int32_t SlotPlaces::num_beside(const PackedSlot& slot, std::int32_t size) const {
  std::int32_t idle = problem_.num_ranks();
  for (const PackedGroup& group : slot.groups) idle -= group.size;
  const std::int32_t most = idle / size;
  if (most == 0 || fits_beside(size)) return most;
  std::vector<std::int32_t> sizes = sizes_of(slot);
  sizes.resize(sizes.size() + static_cast<std::size_t>(most), size);
  std::int32_t count = most;
  for (; count > 0 && find(sizes).empty(); --count) sizes.pop_back();
  return count;
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
