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

// Cuts the ranks into cells of several sizes, the smallest that their bundles allow from that of
// level `narrowest` on. Side by side from rank 0, the widest first; ranks may be left over. First
// the cells of which the last is done as soon as a packing finds; then the same after exchanges
// that even out their tokens too, so that they run as many micro-batches, if that changes any.
// Nothing if some cell would take `limit` or longer. Needs has_nested_bundles().
[[nodiscard]] std::vector<std::vector<BundleCell>> cut_into_cells(const BundleTable& table,
                                                                  std::int32_t num_ranks,
                                                                  std::int32_t narrowest,
                                                                  Nanoseconds limit);

}  // namespace isochron
