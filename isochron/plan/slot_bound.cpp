#include <algorithm>
#include <cmath>

#include "isochron/plan/bounds.h"

namespace isochron {

Nanoseconds slot_bound(const Problem& problem) { return equal_count_bound(problem); }

Nanoseconds equal_count_bound(const Problem& problem) {
  double work = 0;
  double tokens = 0;
  Nanoseconds item = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    double least = -1;
    Nanoseconds fastest = -1;
    Tokens fewest = -1;
    for (const std::int32_t size : problem.sizes()) {
      if (!problem.fits(size, bundle)) continue;
      const Nanoseconds cost = problem.least_cost(size, bundle);
      const double area = static_cast<double>(cost) * size;
      if (least < 0 || area < least) least = area;
      if (fastest < 0 || cost + problem.least_fixed(size) < fastest) fastest = cost + problem.least_fixed(size);
      Tokens sum = 0;
      for (const ItemId it : problem.items_of(bundle)) sum += problem.tokens(size, it);
      if (fewest < 0 || sum < fewest) fewest = sum;
    }
    work += least;
    tokens += static_cast<double>(fewest);
    item = std::max(item, fastest);
  }
  const double ranks = problem.num_ranks();
  const double slots = std::max(1.0, std::ceil(tokens / (ranks * static_cast<double>(problem.capacity())) - 1e-9));
  return std::max(item, static_cast<Nanoseconds>(work / ranks + slots * static_cast<double>(problem.microbatch())));
}

}  // namespace isochron
