// Items go to the cells as evenly as they can. A slot longer than the others of its cell makes all
// stages wait, so a long item weighs more there than it costs. In a cell the dearest items are
// placed first, each into the slot that is furthest from its part of the profile: cells look alike,
// so that slots that wait for each other take equally long.

#include "isochron/plan/pipelines/even_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "isochron/balance/assignment.h"
#include "isochron/core/int128.h"

namespace isochron {

namespace {

// d stages wait for what a long item is longer than an even slot.
std::optional<BinOf> cell_of_bundles(const Problem& problem, const CellItems& cells,
                                     const GridShape& shape, bool is_wait_counted) {
  const auto num_cells = static_cast<std::int32_t>(cells.num_cells());
  const auto size = static_cast<std::int32_t>(cells.ranks(0).size);
  const PriceId price = problem.cheapest_price(size);
  std::vector<Nanoseconds> costs;
  std::vector<Tokens> volumes;
  Nanoseconds sum = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    Tokens volume = 0;
    for (const ItemId item : problem.items_of(bundle)) volume += cells.tokens(0, item);
    volumes.push_back(volume);
    costs.push_back(problem.cost(price, bundle));
    sum += costs.back();
  }
  const Nanoseconds even = sum / (Nanoseconds{num_cells} * shape.num_slots);
  for (BundleId bundle = 0; is_wait_counted && bundle < problem.num_bundles(); ++bundle) {
    Nanoseconds longest = 0;
    for (const ItemId item : problem.items_of(bundle)) {
      longest = std::max(longest, problem.item_cost(price, item));
    }
    costs[static_cast<std::size_t>(bundle)] +=
        (problem.topology().pipeline.stages - 1) * std::max<Nanoseconds>(0, longest - even);
  }
  Limits limits{.capacity = shape.capacity * size * shape.num_slots};
  if (problem.num_bundles() == problem.num_items()) {
    // Every slot holds something, or none holds two.
    const bool is_full = std::int64_t{num_cells} * shape.num_slots <= problem.num_items();
    (is_full ? limits.min_units : limits.max_units) = shape.num_slots;
  }
  const Units units{.costs = costs, .tokens = volumes};
  // What more care makes more even takes long for many, who share slots, where it is lost again.
  constexpr std::int32_t many = 512;
  if (shape.is_rough || problem.num_bundles() > many) {
    if (auto found = longest_first(units, dearest_first(costs), num_cells, limits)) return found;
  }
  return assign(units, num_cells, limits, RefineGoal::largest,
                8 * static_cast<std::int64_t>(costs.size()))
      .bin_of;
}

// Of about a million together, none nothing.
std::vector<std::int64_t> parts_of(std::span<const double> heights) {
  const double sum = std::accumulate(heights.begin(), heights.end(), 0.0);
  std::vector<std::int64_t> parts;
  for (const double height : heights) {
    parts.push_back(std::max<std::int64_t>(1, std::llround(1e6 * height / sum)));
  }
  return parts;
}

// Whether all items, dearest first, found room in the bins of the cell.
bool fill_cell(const Problem& problem, const CellItems& cells, std::size_t cell,
               const GridShape& shape, std::span<const std::int64_t> profile,
               std::span<const ItemId> items, std::span<CellDraft::Bin> bins) {
  const Nanoseconds fixed = cells.fixed(cell);
  Int128 whole = Int128{fixed} * shape.num_slots;
  for (const ItemId item : items) whole += cells.cost(cell, item);
  std::int64_t parts = 0;
  for (const std::int64_t part : profile) parts += part;
  struct Left {        // of a slot
    Nanoseconds time;  // until it has its part
    Tokens tokens;
    std::int32_t num_sequences;
  };
  const std::int32_t most = problem.options().max_sequences;
  std::vector<Left> left;
  for (const std::int64_t part : profile) {
    left.push_back({.time = static_cast<Nanoseconds>(whole * part / parts) - fixed,
                    .tokens = shape.capacity * cells.ranks(cell).size,
                    .num_sequences = most == 0 ? problem.num_items() : most});
  }
  // The slot that lacks most comes first, of equal ones the earlier.
  const auto is_behind = [&](std::size_t a, std::size_t b) {
    return left[a].time != left[b].time ? left[a].time < left[b].time : a > b;
  };
  std::vector<std::size_t> slots(bins.size());
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  std::make_heap(slots.begin(), slots.end(), is_behind);
  // Once there are as many items as empty slots, each goes into one of those.
  std::size_t num_empty = bins.size();
  bool must_open = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!must_open && items.size() - i <= num_empty) {
      must_open = true;
      std::erase_if(slots, [&](std::size_t slot) { return !bins[slot].items.empty(); });
      std::make_heap(slots.begin(), slots.end(), is_behind);
    }
    const Tokens tokens = cells.tokens(cell, items[i]);
    const std::int32_t num_sequences = problem.num_sequences(items[i]);
    auto end = slots.end();  // of those that were not looked at
    while (end != slots.begin()) {
      std::pop_heap(slots.begin(), end--, is_behind);
      const Left& room = left[*end];
      if (bins[*end].items.empty() ||
          (tokens <= room.tokens && (most == 0 || num_sequences <= room.num_sequences))) {
        break;
      }
      if (end == slots.begin()) return false;
    }
    const std::size_t best = *end;
    if (bins[best].items.empty()) {
      --num_empty;
      bins[best].items.reserve((items.size() + bins.size() - 1) / bins.size());
    }
    bins[best].items.push_back(items[i]);
    left[best].time -= cells.cost(cell, items[i]);
    left[best].tokens -= tokens;
    left[best].num_sequences -= num_sequences;
    if (must_open) {
      slots.pop_back();
      continue;
    }
    while (end != slots.end()) std::push_heap(slots.begin(), ++end, is_behind);
  }
  return true;
}

}  // namespace

std::optional<CellDraft> find_even_cells(const Problem& problem, const CellItems& cells,
                                         const GridShape& shape, std::span<const double> heights,
                                         bool is_wait_counted) {
  const auto cell_of = cell_of_bundles(problem, cells, shape, is_wait_counted);
  if (!cell_of) return std::nullopt;
  std::vector<std::vector<ItemId>> items_of_cell(cells.num_cells());
  for (const ItemId item : cells.dearest_first(0)) {
    const auto bundle = static_cast<std::size_t>(cells.bundle_of(item));
    items_of_cell[static_cast<std::size_t>((*cell_of)[bundle])].push_back(item);
  }
  const std::vector<std::int64_t> profile = parts_of(heights);
  const auto num_slots = static_cast<std::size_t>(shape.num_slots);
  CellDraft draft;
  draft.bins.resize(cells.num_cells() * num_slots);
  for (std::size_t cell = 0; cell < cells.num_cells(); ++cell) {
    draft.cells.push_back({.ranks = cells.ranks(cell), .line = cell});
    if (!cells.are_alike()) {  // what costs the same on the first cell may not do so here
      std::sort(items_of_cell[cell].begin(), items_of_cell[cell].end(), [&](ItemId a, ItemId b) {
        return std::pair(-cells.cost(cell, a), a) < std::pair(-cells.cost(cell, b), b);
      });
    }
    if (!fill_cell(problem, cells, cell, shape, profile, items_of_cell[cell],
                   std::span(draft.bins).subspan(cell * num_slots, num_slots))) {
      return std::nullopt;
    }
  }
  return draft;
}

}  // namespace isochron
