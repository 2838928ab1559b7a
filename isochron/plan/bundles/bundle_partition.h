#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/bundles/bundle_sets.h"
#include "isochron/plan/bundles/bundle_table.h"
#include "isochron/plan/draft.h"

namespace isochron {

// Deals bundles out to blocks of a few ranks, each of which runs its own at their best sizes, until
// the last one is done at `bound` or after `num_trials` changes. Nothing where no size of blocks
// has a few bundles in each. Needs has_nested_bundles().
[[nodiscard]] std::optional<Draft> search_partition(const Problem& problem, Nanoseconds bound,
                                                    std::int64_t num_trials,
                                                    BlockPacker::Ranks ranks = {});

// Whether they are so many that search_partition() also tries to raise the bound, by prices.
[[nodiscard]] bool has_priced_bundles(const Problem& problem);

}  // namespace isochron
