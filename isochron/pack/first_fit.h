#pragma once

#include <cstdint>

#include "isochron/balance/assignment.h"

namespace isochron {

struct FirstFit {
  BinOf bin_of;
  std::int32_t num_bins = 0;
};

// First-fit decreasing: longest unit first, each to the first bin with room for its tokens and its
// sequences. Every unit fits a bin alone. O(n log n) where all units have one sequence.
[[nodiscard]] FirstFit first_fit_decreasing(const Units& units, Tokens capacity,
                                            std::int64_t max_size);

}  // namespace isochron
