#include "isochron/plan/slots/slot_places.h"

#include <algorithm>
#include <functional>
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

TakenRanks SlotPlaces::all_free() const {
  return {.is_taken = std::vector<char>(static_cast<std::size_t>(problem_.num_ranks()), false)};
}

// The first place from there on at which ranks are free; none fits behind the last rank.
std::int32_t SlotPlaces::next_free(std::int32_t first, std::int32_t size,
                                   const TakenRanks& taken) const {
  const std::int32_t step = problem_.first_step(size);
  while (first + size <= problem_.num_ranks()) {
    std::int32_t rank = first + size - 1;
    while (rank >= first && !taken.is_taken[static_cast<std::size_t>(rank)]) --rank;
    if (rank < first) break;
    first += ((rank - first) / step + 1) * step;
  }
  return first;
}

// The fixed part tells the link: the first place with the cheapest one that is free.
std::int32_t SlotPlaces::take(std::int32_t size, TakenRanks& taken) const {
  constexpr Nanoseconds none = std::numeric_limits<Nanoseconds>::max();
  const std::int32_t step = problem_.first_step(size);
  const auto fixed_at = [&](std::int32_t first) {
    const PriceId price = problem_.price_of({.first = first, .size = size});
    return price < 0 ? none : problem_.price(price).fixed;
  };
  if (size != taken.size) {
    taken.size = size;
    taken.fixed = problem_.price(problem_.cheapest_price(size)).fixed;
    taken.next = 0;
  }
  const std::int32_t last = problem_.num_ranks() - size;
  std::int32_t first = next_free(taken.next, size, taken);
  while (first <= last && fixed_at(first) != taken.fixed) {
    first = next_free(first + step, size, taken);
  }
  if (first > last) {
    taken.fixed = none;
    for (std::int32_t other = next_free(0, size, taken); other <= last;
         other = next_free(other + step, size, taken)) {
      const Nanoseconds fixed = fixed_at(other);
      if (fixed >= taken.fixed) continue;
      taken.fixed = fixed;
      first = other;
    }
    if (taken.fixed == none) {
      taken.size = 0;  // nothing is known of the next one
      return -1;
    }
  }
  taken.next = first + step;
  std::fill_n(taken.is_taken.begin() + first, size, true);
  return first;
}

bool SlotPlaces::take_all(const std::vector<std::int32_t>& sizes, TakenRanks& taken) const {
  return std::all_of(sizes.begin(), sizes.end(),
                     [&](std::int32_t size) { return take(size, taken) >= 0; });
}

std::int32_t SlotPlaces::row_of(const std::vector<std::int32_t>& sizes) const {
  std::int32_t next = 0;
  for (const std::int32_t size : sizes) {
    if (!can_stand_at(next, size)) return -1;
    next += size;
  }
  return next;
}

std::vector<std::int32_t> SlotPlaces::find(const std::vector<std::int32_t>& sizes) const {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::is_sorted(sizes.begin(), sizes.end(), std::greater<>())) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  }
  TakenRanks taken = all_free();
  std::vector<std::int32_t> places(sizes.size(), -1);
  for (const std::size_t i : order) {
    places[i] = take(sizes[i], taken);
    if (places[i] < 0) return places_in_row(sizes, order);
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

// Whether a group has a place beside the others, which it takes. Those that come widest first stay
// where they are; for a wider one all are placed again.
bool SlotRoom::has_place(std::int32_t size) {
  if (std::find(failed_.begin(), failed_.end(), size) != failed_.end()) return false;
  if (sizes_.empty()) taken_ = places_.all_free();
  const auto place =
      sizes_.insert(std::upper_bound(sizes_.begin(), sizes_.end(), size, std::greater<>()), size);
  const bool is_last = place + 1 == sizes_.end();
  if (!is_in_line_ || !is_last || places_.take(size, taken_) < 0) {
    TakenRanks again = places_.all_free();
    const bool is_in_line = (!is_in_line_ || !is_last) && places_.take_all(sizes_, again);
    if (!is_in_line && places_.row_of(sizes_) < 0) {
      sizes_.erase(place);
      failed_.push_back(size);
      return false;
    }
    is_in_line_ = is_in_line;
    taken_ = std::move(again);
  }
  failed_.clear();
  return true;
}

bool SlotRoom::take(std::int32_t size) {
  if (size > num_free_) return false;
  if (!places_.is_simple()) {
    if (!has_place(size)) return false;
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
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  if (sizes.empty() || size <= sizes.back()) return num_after(sizes, size, most);
  sizes.resize(sizes.size() + static_cast<std::size_t>(most), size);
  std::int32_t count = most;
  for (; count > 0 && find(sizes).empty(); --count) sizes.pop_back();
  return count;
}

// How many groups, up to `most`, find a place after wider ones, widest first: where these leave
// room, or all in a row.
std::int32_t SlotPlaces::num_after(const std::vector<std::int32_t>& sizes, std::int32_t size,
                                   std::int32_t most) const {
  TakenRanks taken = all_free();
  const bool are_placed = take_all(sizes, taken);
  std::int32_t count = 0;
  while (are_placed && count < most && take(size, taken) >= 0) ++count;
  const std::int32_t next = row_of(sizes);
  if (next < 0) return count;
  std::int32_t count_in_row = 0;
  while (count_in_row < most && can_stand_at(next + count_in_row * size, size)) ++count_in_row;
  return std::max(count, count_in_row);
}

bool SlotPlaces::can_stand_at(std::int32_t first, std::int32_t size) const {
  return first + size <= problem_.num_ranks() && first % problem_.first_step(size) == 0 &&
         problem_.price_of({.first = first, .size = size}) >= 0;
}

// One after the other, in this order: fits where groups may start anywhere.
std::vector<std::int32_t> SlotPlaces::places_in_row(const std::vector<std::int32_t>& sizes,
                                                    const std::vector<std::size_t>& order) const {
  std::vector<std::int32_t> places(sizes.size(), -1);
  std::int32_t next = 0;
  for (const std::size_t i : order) {
    if (!can_stand_at(next, sizes[i])) return {};
    places[i] = next;
    next += sizes[i];
  }
  return places;
}

}  // namespace isochron
