#pragma once

#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// What all bundles take of all ranks at least, to see at once that groups of one size are no use.
class LeastAreas {
 public:
  explicit LeastAreas(const Problem& problem);

  // Whether all bundles in groups of `size`, which holds them, take more than `time` of all ranks,
  // whatever else there is.
  [[nodiscard]] bool exceed(std::int32_t size, Nanoseconds time) const;

 private:
  const Problem& problem_;
  std::vector<double> least_;  // of each bundle
  double sum_ = 0;
};

// The same, each bundle on the smallest groups that hold it, where that is enough.
[[nodiscard]] double narrow_area(const Problem& problem);

}  // namespace isochron
