#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"

namespace isochron {

// Deals bundles out to blocks of a level, which run them and what they have on all of their ranks,
// so that the last block is done early: at `aim`, or when `work` splits of two blocks were weighed.
// What `taken` says a block does before, and is part of its time. Nothing if a block would have too
// many.
[[nodiscard]] std::optional<std::vector<BundleSet>> even_blocks(
    const BundleTable& table, std::int32_t level, std::vector<BundleSet> blocks,
    std::span<const Nanoseconds> taken, std::span<const BundleId> bundles, Nanoseconds aim,
    std::int64_t work, Random& random);

}  // namespace isochron
