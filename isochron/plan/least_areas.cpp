// Every bundle takes least in its smallest group, if links are ordered. So the sum of these is
// close to what all ranks have, and few bundles have to be asked about another size.

#include "isochron/plan/least_areas.h"

namespace isochron {

namespace {

double area_of(const Problem& problem, std::int32_t size, BundleId bundle) {
  return static_cast<double>(problem.least_cost(size, bundle)) * size;
}

}  // namespace

LeastAreas::LeastAreas(const Problem& problem)
    : problem_(problem), least_(static_cast<std::size_t>(problem.num_bundles()), 0) {
  if (!problem.order().has_ordered_areas) return;
  for (std::size_t i = 0; i < least_.size(); ++i) {
    const auto bundle = static_cast<BundleId>(i);
    least_[i] = area_of(problem, problem.sizes()[problem.smallest_place(bundle)], bundle);
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

}  // namespace isochron
