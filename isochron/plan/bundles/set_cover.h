#pragma once

#include <cstdint>
#include <optional>

#include "isochron/plan/bundles/tight_sets.h"

namespace isochron {

// Whether bundles are few enough to look for a cover, and no group runs something else before.
[[nodiscard]] bool is_coverable(const TightQuestion& question);

// Sets that cover all bundles of the question within its groups, none of which is done after
// `high`: the search looks for less, down to `low`, and counts a set that it looks at as one of
// `work`. Nothing if it finds none, or if the question is not coverable.
[[nodiscard]] std::optional<TightSets> find_cover(const BundleTable& table,
                                                  const TightQuestion& question, Nanoseconds low,
                                                  Nanoseconds high, std::int64_t work);

}  // namespace isochron
