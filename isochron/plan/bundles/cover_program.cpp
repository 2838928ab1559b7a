#include "isochron/plan/bundles/cover_program.h"

#include <algorithm>

namespace isochron {

void CoverProgram::begin(std::span<const double> parts) {
  count_ = parts.size();
  inverse_.assign(count_ * count_, 0);
  surplus_.assign(count_, false);
  price_.clear();
  for (const double part : parts) price_.push_back(1 / part);
  cover_ = price_;
  for (std::size_t i = 0; i < count_; ++i) inverse_[i * count_ + i] = price_[i];
}

void CoverProgram::join(std::span<const BundleId> bundles) {
  // It takes the row of the first bundle; the blocks of the others stay, unused.
  const auto first = static_cast<std::size_t>(bundles[0]);
  for (const BundleId bundle : bundles.subspan(1)) {
    const auto other = static_cast<std::size_t>(bundle);
    inverse_[first * count_ + other] = -1;
    cover_[other] = 0;
    price_[first] -= 1;
  }
}

double CoverProgram::num_blocks() const {
  double sum = 0;
  for (const double x : cover_) sum += x;
  // Surplus stands in the basis too and is no block.
  for (std::size_t row = 0; row < count_; ++row) {
    if (surplus_[row]) sum -= cover_[row];
  }
  return sum;
}

bool CoverProgram::enter(std::span<const Part> content) {
  change_.assign(count_, 0);
  double gain = -1;
  for (const Part& each : content) {
    const auto bundle = static_cast<std::size_t>(each.bundle);
    add(bundle, each.part);
    gain += price_[bundle] * each.part;
  }
  return exchange(gain, false);
}

bool CoverProgram::enter_surplus(BundleId bundle) {
  change_.assign(count_, 0);
  add(static_cast<std::size_t>(bundle), -1);
  return exchange(-price_[static_cast<std::size_t>(bundle)], true);
}

void CoverProgram::add(std::size_t bundle, double part) {
  for (std::size_t row = 0; row < count_; ++row) {
    change_[row] += part * inverse_[bundle * count_ + row];
  }
}

bool CoverProgram::exchange(double gain, bool is_surplus) {
  if (gain <= 1e-12) return false;
  std::size_t leaving = count_;
  double least = 0;
  for (std::size_t row = 0; row < count_; ++row) {
    if (change_[row] <= 1e-9) continue;
    const double ratio = cover_[row] / change_[row];
    if (leaving == count_ || ratio < least) {
      least = ratio;
      leaving = row;
    }
  }
  if (leaving == count_) return false;
  surplus_[leaving] = is_surplus;
  for (std::size_t row = 0; row < count_; ++row) {
    cover_[row] = row == leaving ? least : std::max(0.0, cover_[row] - least * change_[row]);
  }
  for (std::size_t bundle = 0; bundle < count_; ++bundle) {
    double* const inverse = &inverse_[bundle * count_];
    const double pivot = inverse[leaving] / change_[leaving];
    if (pivot == 0) continue;
    for (std::size_t row = 0; row < count_; ++row) inverse[row] -= pivot * change_[row];
    inverse[leaving] = pivot;
    price_[bundle] -= gain * pivot;
  }
  return true;
}

}  // namespace isochron
