#include "isochron/plan/bundles/cover_program.h"

#include <algorithm>

namespace isochron {

void CoverProgram::begin(std::span<const double> parts) {
  basis_.begin(parts);
  surplus_.assign(parts.size(), false);
  // A block costs 1.
  std::transform(parts.begin(), parts.end(), basis_.prices().begin(),
                 [](double part) { return 1 / part; });
}

void CoverProgram::join(std::span<const BundleId> bundles) {
  for (const BundleId bundle : bundles.subspan(1)) {
    basis_.join(static_cast<std::size_t>(bundles[0]), static_cast<std::size_t>(bundle));
  }
}

double CoverProgram::num_blocks() const {
  const auto uses = basis_.uses();
  double sum = 0;
  for (const double x : uses) sum += x;
  // Surplus stands in the basis too and is no block.
  for (std::size_t row = 0; row < uses.size(); ++row) {
    if (surplus_[row]) sum -= uses[row];
  }
  return sum;
}

bool CoverProgram::enter(std::span<const Part> content) {
  basis_.begin_column();
  double gain = -1;
  for (const Part& each : content) {
    const auto bundle = static_cast<std::size_t>(each.bundle);
    basis_.add(bundle, each.part);
    gain += basis_.prices()[bundle] * each.part;
  }
  return exchange(gain, false);
}

bool CoverProgram::enter_surplus(BundleId bundle) {
  basis_.begin_column();
  basis_.add(static_cast<std::size_t>(bundle), -1);
  return exchange(-basis_.prices()[static_cast<std::size_t>(bundle)], true);
}

bool CoverProgram::exchange(double gain, bool is_surplus) {
  if (gain <= 1e-12) return false;
  const auto row = basis_.exchange(gain);
  if (row) surplus_[*row] = is_surplus;
  return row.has_value();
}

}  // namespace isochron
