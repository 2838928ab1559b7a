#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// What items are on some groups of ranks: the cells.
class CellItems {
 public:
  // Each cell has a price. The problem is kept.
  CellItems(const Problem& problem, std::vector<RankRange> cells);

  [[nodiscard]] std::size_t num_cells() const { return ranks_.size(); }
  [[nodiscard]] RankRange ranks(std::size_t cell) const { return ranks_[cell]; }
  [[nodiscard]] Nanoseconds fixed(std::size_t cell) const { return fixed_[cell]; }
  [[nodiscard]] Nanoseconds cost(std::size_t cell, ItemId item) const {
    return entry(cell, item).cost;
  }
  // At most the capacity of the cell; more if the item does not fit it.
  [[nodiscard]] Tokens tokens(std::size_t cell, ItemId item) const {
    return entry(cell, item).tokens;
  }
  [[nodiscard]] bool fits(std::size_t cell, ItemId item) const {
    return tokens(cell, item) <= capacity_ * ranks_[cell].size;
  }
  [[nodiscard]] BundleId bundle_of(ItemId item) const {
    return bundle_of_[static_cast<std::size_t>(item)];
  }
  // All items by descending cost on a cell, ties by index.
  [[nodiscard]] const std::vector<ItemId>& dearest_first(std::size_t cell) const;
  // Whether all cells have the same price.
  [[nodiscard]] bool are_alike() const { return tables_.size() == 1; }

 private:
  struct Entry {
    Nanoseconds cost = -1;  // not known yet
    Tokens tokens = 0;
  };
  struct Table {  // for one price
    PriceId price = 0;
    mutable std::vector<Entry> entries = {};         // by item; few are asked for on wide cells
    mutable std::vector<ItemId> dearest_first = {};  // empty: not asked for yet
  };

  [[nodiscard]] const Entry& entry(std::size_t cell, ItemId item) const {
    const Table& table = tables_[table_of_[cell]];
    const Entry& known = table.entries[static_cast<std::size_t>(item)];
    return known.cost >= 0 ? known : find_entry(table, item);
  }
  [[nodiscard]] const Entry& find_entry(const Table& table, ItemId item) const;

  const Problem& problem_;
  Tokens capacity_;  // of a rank
  std::vector<RankRange> ranks_;
  std::vector<Nanoseconds> fixed_;     // of a micro-batch, on each cell
  std::vector<std::size_t> table_of_;  // for each cell
  std::vector<Table> tables_;          // for each price that some cell has
  std::vector<BundleId> bundle_of_;
};

// Whether consecutive cells of a size, all of them, are groups.
[[nodiscard]] bool has_price_everywhere(const Problem& problem, std::int32_t size);
// And whether they divide the ranks, and every item fits one.
[[nodiscard]] bool is_static_size(const Problem& problem, std::int32_t size);

// Consecutive cells of one size, which divides the ranks.
[[nodiscard]] std::vector<RankRange> equal_cells(const Problem& problem, std::int32_t size);

}  // namespace isochron
