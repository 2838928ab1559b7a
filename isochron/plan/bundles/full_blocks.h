#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Deals bundles out to blocks of a level, each of which runs its own at their best places within
// `time`, what `taken` says it does before included. Nothing if some found no place, or when as
// many sets as `work` were looked at. A block gets what is worth most: the area of each bundle
// times its weight, which is 1 without `weights`. With them, those of bundles that leave much of
// their block, or find no place, rise for the next call, and the others fall.
[[nodiscard]] std::optional<std::vector<BundleSet>> full_blocks(
    const BundleTable& table, std::int32_t level, BlockPacker& packer,
    std::span<const Nanoseconds> taken, std::span<const BundleId> bundles, Nanoseconds time,
    std::int64_t& work, std::span<double> weights = {});

}  // namespace isochron
