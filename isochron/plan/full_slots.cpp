// Placeholders vanish in several ways: groups of dynamic sizes widen until they fill their slot
// (tiled_slots.h), bundles that keep their ranks get cells of several sizes (full_cells.h), or the
// ranks are cut into groups of one size, each of which gets an item in every slot.

#include "isochron/plan/full_slots.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/plan/bundles/full_cells.h"
#include "isochron/plan/plan_slots.h"
#include "isochron/plan/related_problems.h"

namespace isochron {

namespace {

// Cuts the ranks into groups of `size`, each of which holds an item in every slot, in the most
// slots for which that is found; their number is a multiple of `multiple`. False if it is found for
// none.
bool fill_groups(const Problem& problem, std::int32_t size, std::int32_t multiple,
                 DraftSlots& slots) {
  const std::int32_t num_cells = problem.num_ranks() / size;
  if (problem.num_ranks() % size != 0) return false;
  for (std::int64_t first = 0; first < problem.num_ranks(); first += size) {
    if (problem.price_of({.first = first, .size = size}) < 0) return false;  // idles in every slot
  }
  if (problem.options().keep_groups == KeepGroups::rank && num_cells > 1) return false;
  const PriceId price = problem.cheapest_price(size);
  const auto count = static_cast<std::size_t>(problem.num_items());
  std::vector<Nanoseconds> costs(count);
  std::vector<Tokens> tokens(count);
  std::vector<std::int32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto item = static_cast<ItemId>(i);
    if (!problem.item_fits(size, item)) return false;
    costs[i] = problem.item_cost(price, item);
    tokens[i] = std::min(problem.tokens(size, item), problem.capacity() * size);
    sizes[i] = problem.num_sequences(item);
  }
  const std::int32_t most = problem.num_items() / num_cells / multiple * multiple;
  for (std::int32_t m = most; m >= 1; m -= multiple) {
    Limits limits{.capacity = problem.capacity() * size, .min_units = 1};
    if (problem.options().max_sequences > 0) limits.max_size = problem.options().max_sequences;
    const Assignment assignment = assign({.costs = costs, .tokens = tokens, .sizes = sizes},
                                         m * num_cells, limits, RefineGoal::largest, std::nullopt);
    if (!assignment.bin_of) continue;
    std::vector<DraftGroup> groups(static_cast<std::size_t>(m * num_cells));
    for (std::size_t i = 0; i < count; ++i) {
      groups[static_cast<std::size_t>((*assignment.bin_of)[i])].items.push_back(
          static_cast<ItemId>(i));
    }
    // Those of a slot take equally long; within a slot the order of ranks alternates, so that the
    // sums of the ranks stay even.
    std::vector<std::pair<Nanoseconds, std::size_t>> order;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].ranks = {.first = 0, .size = size};
      order.emplace_back(-group_time(problem, groups[g]), g);
    }
    std::sort(order.begin(), order.end());
    slots.assign(static_cast<std::size_t>(m), {});
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto slot = k / static_cast<std::size_t>(num_cells);
      const auto place = static_cast<std::int64_t>(k % static_cast<std::size_t>(num_cells));
      DraftGroup& group = groups[order[k].second];
      group.ranks.first = (slot % 2 == 0 ? place : num_cells - 1 - place) * size;
      slots[slot].push_back(std::move(group));
    }
    return true;
  }
  return false;
}

bool is_dynamic(const Problem& problem) {
  return context_mode(problem.options().context).kind != ContextMode::Kind::fixed;
}

}  // namespace

bool must_be_full(const PlanOptions& options) {
  return options.counts == Counts::equal && options.short_ != Short::empty;
}

FullSlots::FullSlots(const Problem& problem)
    : problem_(problem), multiple_(problem.topology().pipeline.group) {
  const bool is_kept = problem.options().keep_groups == KeepGroups::rank;
  if (is_dynamic(problem) && !is_kept) tiled_.emplace(problem, multiple_);
}

bool FullSlots::consider(DraftSlots slots, TimedSlots& best) const {
  const Nanoseconds time = predicted_time(problem_, slots);
  if (time >= best.time) return false;
  best = {.slots = std::move(slots), .time = time};
  return true;
}

// Groups of one size.
const TimedSlots& FullSlots::even() {
  if (even_) return *even_;
  even_.emplace();
  for (const std::int32_t size : problem_.sizes()) {
    if (DraftSlots slots; fill_groups(problem_, size, multiple_, slots)) {
      consider(std::move(slots), *even_);
    }
  }
  return *even_;
}

const TimedSlots& FullSlots::dealt() {
  if (dealt_) return *dealt_;
  dealt_.emplace();
  if (!is_dynamic(problem_)) return *dealt_;
  if (!tiled_) {
    if (auto slots = find_full_cells(problem_, multiple_)) consider(*std::move(slots), *dealt_);
    return *dealt_;
  }
  const std::int32_t num_cells = problem_.num_ranks() / problem_.sizes().front();
  const std::int32_t fewest = (problem_.num_items() + num_cells - 1) / num_cells;
  const std::int32_t first = (fewest + multiple_ - 1) / multiple_ * multiple_;
  constexpr std::int64_t most = 1 << 16;  // more of them fill the slots that they are found in
  if (std::int64_t{first} * problem_.num_items() > most) return *dealt_;
  const std::set<std::int32_t> counts = {first - multiple_, first,     first + multiple_,
                                         2 * first,         3 * first, 4 * first};
  for (const std::int32_t count : counts) {
    if (count < 1 || count > problem_.num_items()) continue;
    auto slots = tiled_->dealt(count);
    // Once more slots are no better, still more are not.
    if (slots && !consider(*std::move(slots), *dealt_) && count > first) break;
  }
  return *dealt_;
}

std::optional<DraftSlots> FullSlots::find(const DraftSlots& slots) {
  if (!has_placeholder(slots)) return slots;
  TimedSlots best = even();
  if (tiled_) {
    for (DraftSlots& full : tiled_->refilled(slots)) consider(std::move(full), best);
  }
  if (best.slots) return std::move(best.slots);
  return dealt().slots;
}

std::unique_ptr<Problem> find_whole_groups(const Problem& problem) {
  const std::int32_t all = problem.num_ranks();
  if (!must_be_full(problem.options())) return nullptr;
  if (!is_dynamic(problem) || problem.sizes().back() != all || all == 1) return nullptr;
  std::int32_t divisor = 0;  // of all sizes that are of use
  for (const std::int32_t size : problem.sizes()) {
    for (ItemId item = 0; item < problem.num_items() && size < all; ++item) {
      if (!problem.item_fits(size, item)) continue;
      divisor = std::gcd(divisor, size);
      break;
    }
  }
  const bool can_fill = divisor > 0 && all % divisor == 0;
  return can_fill || !holds_all(problem, all) ? nullptr : with_static_size(problem, all);
}

}  // namespace isochron
