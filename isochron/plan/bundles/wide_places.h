#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/draft.h"

namespace isochron {

// Bundles on groups wider than the blocks of a level, which run them before anything else.
struct WidePlaces {
  std::vector<RankRange> ranks;     // of each bundle; size 0: it is left to the blocks
  std::vector<Nanoseconds> before;  // of each block, what these take of it

  [[nodiscard]] bool has(BundleId bundle) const {
    return ranks[static_cast<std::size_t>(bundle)].size > 0;
  }
};

// What no block of the level runs within `limit` goes to the smallest groups that do, the widest
// first, where least is; and so does each of `widened`, to groups that run it faster than a block.
// Nothing if a bundle takes longer on all sizes.
[[nodiscard]] std::optional<WidePlaces> find_wide_places(const BundleTable& table,
                                                         std::int32_t num_ranks, std::int32_t level,
                                                         Nanoseconds limit,
                                                         std::span<const BundleId> widened = {});

// The next limits, a few, within which these bundles have narrower groups.
[[nodiscard]] std::vector<Nanoseconds> narrower_limits(const BundleTable& table, std::int32_t level,
                                                       const WidePlaces& places);

}  // namespace isochron
