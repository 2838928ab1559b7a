// Placeholders vanish in two ways: groups of dynamic sizes widen over those beside them, or the
// ranks are cut into groups of one size, each of which gets an item in every slot.

#include "isochron/plan/full_slots.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "isochron/balance/assignment.h"
#include "isochron/plan/plan_slots.h"

namespace isochron {

namespace {

// For dynamic sizes: widens groups over placeholders beside them; what cannot be filled like that
// runs on all ranks, one item after the other. False if that leaves a placeholder, breaks the
// capacity, or gives a number of slots that `multiple` does not divide.
bool widen(const Problem& problem, std::int32_t multiple, DraftSlots& slots) {
  if (problem.options().keep_groups == KeepGroups::rank)
    return false;  // all of a bundle would move
  DraftSlots result;
  std::vector<ItemId> rest;
  for (auto& slot : slots) {
    std::erase_if(slot, [](const DraftGroup& group) { return group.items.empty(); });
    for (bool is_changed = !slot.empty(); is_changed;) {
      is_changed = false;
      const std::vector<std::int32_t> group_of = groups_by_rank(problem, slot);
      for (std::size_t g = 0; g < slot.size() && !is_changed; ++g) {
        DraftGroup& group = slot[g];
        if (problem.is_alone(group.items.front())) continue;
        for (const std::int32_t size : problem.sizes()) {
          if (size <= group.ranks.size) continue;
          const std::int64_t step = problem.first_step(size);
          const std::int64_t first_start =
              problem.is_aligned()
                  ? group.ranks.first / step * step
                  : std::max<std::int64_t>(0, group.ranks.first + group.ranks.size - size);
          for (std::int64_t first = first_start;
               first <= group.ranks.first && first + size <= problem.num_ranks(); first += step) {
            const RankRange ranks{.first = first, .size = size};
            Tokens tokens = 0;
            bool is_small = true;
            for (const ItemId item : group.items) {
              tokens += problem.tokens(size, item);
              is_small = is_small && problem.item_fits(size, item);
            }
            const auto begin = group_of.begin() + first;
            const bool is_free = first + size >= group.ranks.first + group.ranks.size && is_small &&
                                 tokens <= problem.capacity() * size &&
                                 problem.price_of(ranks) >= 0 &&
                                 std::all_of(begin, begin + size, [&](std::int32_t other) {
                                   return other < 0 || other == static_cast<std::int32_t>(g);
                                 });
            if (!is_free) continue;
            group.ranks = ranks;
            is_changed = true;
            break;
          }
          if (is_changed) break;
        }
      }
    }
    std::int64_t covered = 0;
    for (const DraftGroup& group : slot) covered += group.ranks.size;
    if (covered == problem.num_ranks()) {
      result.push_back(std::move(slot));
    } else {
      for (const DraftGroup& group : slot)
        rest.insert(rest.end(), group.items.begin(), group.items.end());
    }
  }
  const std::int32_t all = problem.num_ranks();
  if (!rest.empty() && problem.sizes().back() != all) return false;
  const auto alone = [&](ItemId item) {
    result.push_back({{.ranks = {.first = 0, .size = all}, .items = {item}}});
    return problem.item_fits(all, item);
  };
  for (const ItemId item : rest) {
    if (!alone(item)) return false;
  }
  while (static_cast<std::int32_t>(result.size()) % multiple != 0) {
    DraftGroup* donor = nullptr;
    for (auto& slot : result) {
      for (DraftGroup& group : slot) {
        if (group.items.size() >= 2) donor = &group;
      }
    }
    if (donor == nullptr || problem.sizes().back() != all) return false;
    const ItemId item = donor->items.back();
    donor->items.pop_back();
    if (!alone(item)) return false;
  }
  slots = std::move(result);
  return true;
}

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

}  // namespace

std::optional<DraftSlots> find_full_slots(
    const Problem& problem, std::int32_t multiple, DraftSlots slots,
    const std::function<Nanoseconds(const DraftSlots& slots)>& time) {
  if (!has_placeholder(slots)) return slots;
  std::optional<DraftSlots> best;
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  const auto consider = [&](DraftSlots full) {
    const Nanoseconds time_here = time(full);
    if (best && time_here >= least) return;
    least = time_here;
    best = std::move(full);
  };
  const bool is_fixed = context_mode(problem.options().context).kind == ContextMode::Kind::fixed;
  if (DraftSlots wider = slots; !is_fixed && widen(problem, multiple, wider)) {
    consider(std::move(wider));
  }
  for (const std::int32_t size : problem.sizes()) {
    if (DraftSlots even; fill_groups(problem, size, multiple, even)) consider(std::move(even));
  }
  return best;
}

std::optional<DraftSlots> find_full_slots(const StepPlan& plan, const Problem& problem,
                                          DraftSlots slots) {
  const PipelineShape& shape = plan.topology.pipeline;
  StepPlan trial = plan;
  return find_full_slots(problem, shape.virtual_ > 1 ? shape.group : 1, std::move(slots),
                         [&](const DraftSlots& each) {
                           set_slots(problem, each, trial);
                           set_prediction(trial);
                           return trial.predicted_step_ns;
                         });
}

}  // namespace isochron
