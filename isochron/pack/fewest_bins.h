#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "isochron/balance/assignment.h"

namespace isochron {

struct FewestBins {
  BinOf bin_of;
  std::int32_t num_bins = 0;
  std::int32_t lower_bound = 0;  // no packing has fewer bins
};

// Packs the units into as few bins as first-fit decreasing and a search below it find. Every unit
// fits a bin alone. The search ends at enough(lower_bound) bins: fewer would not help.
[[nodiscard]] FewestBins fewest_bins(const Units& units, Tokens capacity, std::int64_t max_size,
                                     const std::function<std::int64_t(std::int32_t)>& enough,
                                     std::optional<std::int64_t> max_work);

}  // namespace isochron
