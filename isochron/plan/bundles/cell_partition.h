#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Ranks that stay together for a whole step, and the bundles that they run.
struct BundleCell {
  RankRange ranks;
  std::vector<BundleId> bundles;

  friend bool operator==(const BundleCell&, const BundleCell&) = default;
};

// All that a cell runs.
[[nodiscard]] std::vector<ItemId> items_of(const Problem& problem, const BundleCell& cell);

// Sizes that cells may have together, ascending: each divides the next, so that cells stand side by
// side, the widest first, and cost the same wherever they are. All sizes of the problem where these
// are such; else the smallest that double, and those that divide all ranks. None where bundles have
// no ranks of their own, or ranks are not alike.
[[nodiscard]] std::vector<std::vector<std::int32_t>> cell_sizes(const Problem& problem);

// How cells are cut.
struct CellRule {
  std::int32_t narrowest = 0;          // level; no cell is smaller
  double wait = 0;                     // of a cell for its longest item, beside all that it runs
  Nanoseconds limit = max_total_cost;  // no cell takes that long
};

// Cuts the ranks into cells of the sizes of a table, which are of cell_sizes(), the smallest that
// their bundles allow. Side by side from rank 0, the widest first; ranks may be left over. First
// the cells of which the last is done as soon as a packing finds; then, where they do not wait for
// long items, the same after exchanges that even out their tokens too, so that they run as many
// micro-batches, if that changes any. Nothing if the rule cannot be kept.
[[nodiscard]] std::vector<std::vector<BundleCell>> cut_into_cells(const Problem& problem,
                                                                  const BundleTable& table,
                                                                  const CellRule& rule);

}  // namespace isochron
