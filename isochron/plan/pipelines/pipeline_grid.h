#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// What items are on groups of one size, side by side over all ranks: the cells.
class CellItems {
 public:
  // The size divides the ranks, every cell has a price, and all items fit.
  CellItems(const Problem& problem, std::int32_t size);

  [[nodiscard]] std::int32_t size() const { return size_; }
  [[nodiscard]] std::size_t num_cells() const { return fixed_.size(); }
  [[nodiscard]] RankRange ranks(std::size_t cell) const {
    return {.first = static_cast<std::int64_t>(cell) * size_, .size = size_};
  }
  [[nodiscard]] Nanoseconds fixed(std::size_t cell) const { return fixed_[cell]; }
  [[nodiscard]] Nanoseconds cost(std::size_t cell, ItemId item) const {
    return costs_[table_of_[cell]][static_cast<std::size_t>(item)];
  }
  [[nodiscard]] Tokens tokens(ItemId item) const { return tokens_[static_cast<std::size_t>(item)]; }
  [[nodiscard]] BundleId bundle_of(ItemId item) const {
    return bundle_of_[static_cast<std::size_t>(item)];
  }

 private:
  std::int32_t size_;
  std::vector<Nanoseconds> fixed_;               // of a micro-batch, on each cell
  std::vector<std::size_t> table_of_;            // of costs_, for each cell
  std::vector<std::vector<Nanoseconds>> costs_;  // by item, for each price that some cell has
  std::vector<Tokens> tokens_;                   // by item, at most the capacity of a cell
  std::vector<BundleId> bundle_of_;
};

// Every cell runs the same number of slots through its stages.
struct GridShape {
  std::int32_t num_slots = 1;  // a multiple of pipeline.group
  Tokens capacity = 0;         // of a rank; only micro-batches of one item may exceed it
  bool is_rough = false;       // items go to the cells by longest_first() alone
};

struct Grid {
  DraftSlots slots;      // empty bins are left out
  Nanoseconds time = 0;  // of simulate(), if each bin holds something
};

// Spreads the items over the cells and those of a cell over its slots by the parts of `profile`.
// Then moves and exchanges items and reorders slots while that is not slower, until the time meets
// `bound` or `work` operations were played. None if some item found no room.
[[nodiscard]] std::optional<Grid> find_grid(const Problem& problem, const CellItems& cells,
                                            const GridShape& shape,
                                            std::span<const std::int64_t> profile,
                                            Nanoseconds bound, std::int64_t work);

}  // namespace isochron
