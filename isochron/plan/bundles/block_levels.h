#pragma once

#include <cstdint>

#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Whether groups of a level take less than `little` times the area of those of the level below.
[[nodiscard]] bool is_cheap(const BundleTable& table, std::int32_t level, double little);

// Whether a group of the smallest size with a little more than its share of all bundles has one
// micro-batch.
[[nodiscard]] bool fills_one_microbatch(const BundleTable& table, std::int32_t num_ranks);

// The size of blocks that have two to four bundles each; of one rank if more than two are on it,
// for pairs are hardly ever even. Of several sizes the largest, unless its groups are dear: its
// blocks have more to choose from. -1: there is none.
[[nodiscard]] std::int32_t level_of_blocks(const BundleTable& table, std::int32_t num_ranks);

}  // namespace isochron
