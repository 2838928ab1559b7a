// Every bundle takes least in its smallest group, or little more. So the sum of these is close to
// what all ranks have, and few bundles have to be asked about another size.

#include "isochron/plan/least_areas.h"

#include <algorithm>

namespace isochron {

namespace {

double area_of(const Problem& problem, std::int32_t size, BundleId bundle) {
  return static_cast<double>(problem.least_cost(size, bundle)) * size;
}

}  // namespace

LeastAreas::LeastAreas(const Problem& problem)
    : problem_(problem), least_(static_cast<std::size_t>(problem.num_bundles()), 0) {
  const auto sizes = problem.sizes();
  for (std::size_t i = 0; i < least_.size(); ++i) {
    const auto bundle = static_cast<BundleId>(i);
    std::size_t place = problem.smallest_place(bundle);
    least_[i] = area_of(problem, sizes[place], bundle);
    while (!problem.grows_from(sizes[place]) && ++place < sizes.size()) {
      if (!problem.fits(sizes[place], bundle)) continue;
      least_[i] = std::min(least_[i], area_of(problem, sizes[place], bundle));
    }
    sum_ += least_[i];
  }
}

bool LeastAreas::exceed(std::int32_t size, Nanoseconds time) const {
  if (problem_.has_speeds()) return false;
  const double limit = static_cast<double>(time) * problem_.num_ranks() * (1 + 1e-12);
  double area = sum_;
  for (std::size_t i = 0; i < least_.size() && area < limit; ++i) {
    area += area_of(problem_, size, static_cast<BundleId>(i)) - least_[i];
  }
  return area >= limit;
}

double narrow_area(const Problem& problem) {
  double area = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const std::int32_t size = problem.sizes()[problem.smallest_place(bundle)];
    area += static_cast<double>(problem.least_cost(size, bundle)) * size;
  }
  return area;
}

}  // namespace isochron
