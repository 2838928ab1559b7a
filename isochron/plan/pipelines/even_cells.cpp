// Items go to the cells as evenly as they can. A slot longer than the others of its cell makes all
// stages wait, so a long item weighs more there than it costs. In a cell the dearest items are
// placed first, each into the slot that is furthest from its part of the profile: cells look alike,
// so that slots that wait for each other take equally long.

#include "isochron/plan/pipelines/even_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "isochron/balance/assignment.h"
#include "isochron/balance/tournament.h"
#include "isochron/core/int128.h"

namespace isochron {

namespace {

// Bundles of one item come in the order of these, whether waits are counted or not.
DearestFirst dearest_first_of(const Problem& problem, const CellItems& cells,
                              const std::vector<Nanoseconds>& costs) {
  if (problem.num_bundles() != problem.num_items()) return dearest_first(costs);
  DearestFirst order{.units = cells.dearest_first(0), .costs = {}};
  order.costs.reserve(costs.size());
  for (const BundleId bundle : order.units) {
    order.costs.push_back(costs[static_cast<std::size_t>(bundle)]);
  }
  return order;
}

// Over cells of unequal speed: each unit, dearest first, goes where it ends first.
std::optional<BinOf> longest_first_by_speed(const Problem& problem, const CellItems& cells,
                                            const Units& units, const DearestFirst& order,
                                            const Limits& limits) {
  struct Cell {
    double slowness = 1;
    Nanoseconds cost = 0;
    Tokens tokens = 0;
    std::int32_t num_units = 0;
  };
  std::vector<Cell> filled(cells.num_cells());
  for (std::size_t i = 0; i < filled.size(); ++i) {
    filled[i].slowness = problem.slowness(cells.ranks(i));
  }
  auto num_lacking = static_cast<std::int64_t>(filled.size()) * limits.min_units;
  BinOf bin_of(units.count());
  for (std::size_t i = 0; i < order.units.size(); ++i) {
    const auto unit = static_cast<std::size_t>(order.units[i]);
    // The last ones go where units are lacking.
    const bool must_fill = std::ssize(order.units) - static_cast<std::ptrdiff_t>(i) <= num_lacking;
    Cell* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (Cell& cell : filled) {
      if (cell.num_units >= (must_fill ? limits.min_units : limits.max_units)) continue;
      if (units.tokens[unit] > limits.capacity - cell.tokens) continue;
      const double end = static_cast<double>(cell.cost + units.costs[unit]) * cell.slowness;
      if (end >= least) continue;
      least = end;
      best = &cell;
    }
    if (best == nullptr) return std::nullopt;
    best->cost += units.costs[unit];
    best->tokens += units.tokens[unit];
    if (best->num_units++ < limits.min_units) --num_lacking;
    bin_of[unit] = static_cast<std::int32_t>(best - filled.data());
  }
  return bin_of;
}

// d stages wait for what a long item is longer than an even slot.
std::optional<BinOf> cell_of_bundles(const Problem& problem, const CellItems& cells,
                                     const GridShape& shape, bool is_wait_counted) {
  const auto num_cells = static_cast<std::int32_t>(cells.num_cells());
  const auto size = static_cast<std::int32_t>(cells.ranks(0).size);
  const PriceId price = problem.cheapest_price(size);
  std::vector<Nanoseconds> costs;
  std::vector<Tokens> volumes;
  costs.reserve(static_cast<std::size_t>(problem.num_bundles()));
  volumes.reserve(costs.capacity());
  Nanoseconds sum = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    Tokens volume = 0;
    for (const ItemId item : problem.items_of(bundle)) volume += cells.tokens(0, item);
    volumes.push_back(volume);
    costs.push_back(problem.cost(price, bundle));
    sum += costs.back();
  }
  const Nanoseconds even = sum / (Nanoseconds{num_cells} * shape.num_slots);
  // Sums of what is too long to be counted so often are no numbers.
  const double with_waits = static_cast<double>(sum) * problem.topology().pipeline.stages;
  is_wait_counted = is_wait_counted && with_waits < static_cast<double>(max_total_cost);
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
  if (problem.has_speeds()) {
    const DearestFirst order = dearest_first_of(problem, cells, costs);
    if (auto found = longest_first_by_speed(problem, cells, units, order, limits)) return found;
  }
  // What more care makes more even takes long for many, who share slots, where it is lost again.
  constexpr std::int32_t many = 512;
  if (shape.is_rough || problem.num_bundles() > many) {
    if (auto found =
            longest_first(units, dearest_first_of(problem, cells, costs), num_cells, limits))
      return found;
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
  struct Left {  // of a slot
    Tokens tokens;
    std::int32_t num_sequences;
  };
  const std::int32_t most = problem.options().max_sequences;
  std::vector<Left> left(
      bins.size(), {.tokens = shape.capacity * cells.ranks(cell).size, .num_sequences = most});
  // Seldom too much for 64 bits, whose division takes a fraction of the time.
  const bool is_small = whole <= std::numeric_limits<std::int64_t>::max() / parts;
  std::vector<Nanoseconds> filled;  // less than the part of a slot: below 0
  filled.reserve(profile.size());
  for (const std::int64_t part : profile) {
    filled.push_back(fixed - (is_small ? static_cast<Nanoseconds>(whole) * part / parts
                                       : static_cast<Nanoseconds>(whole * part / parts)));
  }
  Tournament emptiest(filled);
  std::vector<std::int32_t> aside;  // slots without room for the item
  // Once there are as many items as empty slots, each goes into one of those.
  std::size_t num_empty = bins.size();
  bool must_open = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!must_open && items.size() - i <= num_empty) {
      must_open = true;
      for (std::size_t slot = 0; slot < bins.size(); ++slot) {
        if (bins[slot].items.empty()) continue;
        emptiest.set(static_cast<std::int32_t>(slot), Tournament::out);
      }
    }
    const Tokens tokens = cells.tokens(cell, items[i]);
    const std::int32_t num_sequences = problem.num_sequences(items[i]);
    const auto has_room = [&](std::size_t slot) {
      return bins[slot].items.empty() || (tokens <= left[slot].tokens &&
                                          (most == 0 || num_sequences <= left[slot].num_sequences));
    };
    while (!emptiest.is_empty() && !has_room(static_cast<std::size_t>(emptiest.bin()))) {
      aside.push_back(emptiest.bin());
      emptiest.set(aside.back(), Tournament::out);
    }
    if (emptiest.is_empty()) return false;
    const auto best = static_cast<std::size_t>(emptiest.bin());
    if (bins[best].items.empty()) {
      --num_empty;
      bins[best].items.reserve((items.size() + bins.size() - 1) / bins.size());
    }
    bins[best].items.push_back(items[i]);
    filled[best] += cells.cost(cell, items[i]);
    left[best].tokens -= tokens;
    left[best].num_sequences -= num_sequences;
    emptiest.set(emptiest.bin(), must_open ? Tournament::out : filled[best]);
    for (const std::int32_t slot : aside) {
      emptiest.set(slot, filled[static_cast<std::size_t>(slot)]);
    }
    aside.clear();
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
  const auto about = static_cast<std::size_t>(problem.num_items()) / cells.num_cells();
  for (auto& items : items_of_cell) items.reserve(about + about / 4);
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
