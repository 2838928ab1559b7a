#include "isochron/plan/pipelines/cell_items.h"

#include <algorithm>
#include <utility>

#include "isochron/balance/assignment.h"

namespace isochron {

CellItems::CellItems(const Problem& problem, std::vector<RankRange> cells)
    : problem_(problem), capacity_(problem.capacity()), ranks_(std::move(cells)) {
  std::vector<PriceId> known;
  for (const RankRange& ranks : ranks_) {
    const PriceId price = problem.price_of(ranks);
    const auto table = std::find(known.begin(), known.end(), price);
    table_of_.push_back(static_cast<std::size_t>(table - known.begin()));
    if (table == known.end()) known.push_back(price);
    fixed_.push_back(problem.price(price).fixed);
  }
  for (const PriceId price : known) {
    tables_.push_back({.price = price});
    tables_.back().entries.resize(static_cast<std::size_t>(problem.num_items()));
  }
  bundle_of_.resize(static_cast<std::size_t>(problem.num_items()));
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    for (const ItemId item : problem.items_of(bundle)) {
      bundle_of_[static_cast<std::size_t>(item)] = bundle;
    }
  }
}

const CellItems::Entry& CellItems::find_entry(const Table& table, ItemId item) const {
  const std::int32_t size = problem_.price(table.price).size;
  const Tokens room = capacity_ * size;
  const bool fits = problem_.item_fits(size, item);
  return table.entries[static_cast<std::size_t>(item)] = {
             .cost = fits ? problem_.item_cost(table.price, item) : 0,
             .tokens = fits ? std::min(problem_.tokens(size, item), room) : room + 1};
}

const std::vector<ItemId>& CellItems::dearest_first(std::size_t cell) const {
  const Table& table = tables_[table_of_[cell]];
  if (table.dearest_first.empty()) {
    std::vector<Nanoseconds> costs(table.entries.size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] = cost(cell, static_cast<ItemId>(i));
    }
    table.dearest_first = isochron::dearest_first(costs).units;
  }
  return table.dearest_first;
}

bool has_price_everywhere(const Problem& problem, std::int32_t size) {
  for (std::int32_t first = 0; first + size <= problem.num_ranks(); first += size) {
    if (problem.price_of({.first = first, .size = size}) < 0) return false;
  }
  return true;
}

bool is_static_size(const Problem& problem, std::int32_t size) {
  if (problem.num_ranks() % size != 0 || !has_price_everywhere(problem, size)) return false;
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.item_fits(size, item)) return false;
  }
  return true;
}

std::vector<RankRange> equal_cells(const Problem& problem, std::int32_t size) {
  std::vector<RankRange> cells;
  for (std::int64_t first = 0; first < problem.num_ranks(); first += size) {
    cells.push_back({.first = first, .size = size});
  }
  return cells;
}

}  // namespace isochron
