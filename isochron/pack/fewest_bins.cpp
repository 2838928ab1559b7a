#include "isochron/pack/fewest_bins.h"

#include <algorithm>

#include "isochron/pack/bounds.h"
#include "isochron/pack/first_fit.h"
#include "isochron/pack/repack.h"

namespace isochron {

namespace {

// Enough for the bound on 99 % of lognormal batches. Where the bound cannot be met, the gains dry
// up before the work does.
RepackLimits limits_of(std::optional<std::int64_t> max_work, std::size_t num_units) {
  const auto n = static_cast<std::int64_t>(num_units);
  if (max_work) return {.work = *max_work, .patience = *max_work};
  return {.work = std::min<std::int64_t>(2'000'000 + 4000 * n, 8'000'000),
          .patience = 200'000 + 300 * n};
}

std::int32_t bound_of(const Units& units, Tokens capacity, std::int64_t max_size) {
  std::int64_t size = 0;
  for (std::size_t unit = 0; unit < units.count(); ++unit) size += units.size_of(unit);
  const std::int64_t by_size = size / max_size + (size % max_size != 0 ? 1 : 0);
  return std::max(count_bound(units.tokens, capacity), static_cast<std::int32_t>(by_size));
}

}  // namespace

FewestBins fewest_bins(const Units& units, Tokens capacity, std::int64_t max_size,
                       const std::function<std::int64_t(std::int32_t)>& enough,
                       std::optional<std::int64_t> max_work) {
  FewestBins result;
  if (units.count() == 0) return result;
  FirstFit start = first_fit_decreasing(units, capacity, max_size);
  result.bin_of = std::move(start.bin_of);
  result.num_bins = start.num_bins;
  result.lower_bound = bound_of(units, capacity, max_size);
  const auto can_improve = [&] {
    return result.num_bins > std::max<std::int64_t>(result.lower_bound, enough(result.lower_bound));
  };
  if (can_improve()) {
    const auto target =
        std::clamp<std::int64_t>(enough(result.lower_bound), result.lower_bound, result.num_bins);
    result.num_bins =
        repack(units, capacity, max_size, result.num_bins, static_cast<std::int32_t>(target),
               limits_of(max_work, units.count()), result.bin_of);
  }
  // A handful of units: decide each number of bins in between.
  while (can_improve()) {
    const Limits limits{.capacity = capacity, .max_size = max_size, .min_units = 1};
    Fit found = find_fit(units, result.lower_bound, limits, max_work);
    if (found.bin_of) {
      result.bin_of = std::move(*found.bin_of);
      result.num_bins = result.lower_bound;
    } else if (found.is_excluded) {
      ++result.lower_bound;
    } else {
      break;
    }
  }
  return result;
}

}  // namespace isochron
