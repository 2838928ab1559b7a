#include "isochron/plan/pipelines/cell_items.h"

#include <algorithm>
#include <utility>

#include "isochron/balance/assignment.h"

namespace isochron {

CellItems::CellItems(const Problem& problem, std::vector<RankRange> cells)
    : capacity_(problem.capacity()), ranks_(std::move(cells)) {
  std::vector<PriceId> known;
  for (const RankRange& ranks : ranks_) {
    const PriceId price = problem.price_of(ranks);
    const auto table = std::find(known.begin(), known.end(), price);
    table_of_.push_back(static_cast<std::size_t>(table - known.begin()));
    if (table == known.end()) known.push_back(price);
    fixed_.push_back(problem.price(price).fixed);
  }
  for (const PriceId price : known) {
    Table& table = tables_.emplace_back();
    const std::int32_t size = problem.price(price).size;
    const Tokens room = capacity_ * size;
    table.costs.reserve(static_cast<std::size_t>(problem.num_items()));
    table.tokens.reserve(static_cast<std::size_t>(problem.num_items()));
    for (ItemId item = 0; item < problem.num_items(); ++item) {
      const bool fits = problem.item_fits(size, item);
      table.costs.push_back(fits ? problem.item_cost(price, item) : 0);
      table.tokens.push_back(fits ? std::min(problem.tokens(size, item), room) : room + 1);
    }
  }
  bundle_of_.resize(static_cast<std::size_t>(problem.num_items()));
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    for (const ItemId item : problem.items_of(bundle)) {
      bundle_of_[static_cast<std::size_t>(item)] = bundle;
    }
  }
}

const std::vector<ItemId>& CellItems::dearest_first(std::size_t cell) const {
  const Table& table = tables_[table_of_[cell]];
  if (table.dearest_first.empty()) {
    table.dearest_first = isochron::dearest_first(table.costs).units;
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
