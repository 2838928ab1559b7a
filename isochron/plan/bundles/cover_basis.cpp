#include "isochron/plan/bundles/cover_basis.h"

#include <algorithm>

namespace isochron {

void CoverBasis::begin(std::span<const double> parts) {
  size_ = parts.size();
  price_.assign(size_ + 1, 0);
  inverse_.assign(size_ * size_, 0);
  use_.clear();
  for (const double part : parts) use_.push_back(1 / part);
  for (std::size_t i = 0; i < size_; ++i) inverse_[i * size_ + i] = use_[i];
}

// The column of the other stays in its row, unused.
void CoverBasis::join(std::size_t first, std::size_t other) {
  inverse_[first * size_ + other] = -1;
  use_[other] = 0;
  price_[first] -= 1;
}

void CoverBasis::begin_column() { change_.assign(size_, 0); }

void CoverBasis::add(std::size_t element, double part) {
  const auto of_rows = inverse(element);
  for (std::size_t row = 0; row < size_; ++row) change_[row] += part * of_rows[row];
}

std::optional<std::size_t> CoverBasis::exchange(double gain) {
  constexpr double rounding = 1e-9;
  std::size_t leaving = size_;
  double least = 0;
  for (std::size_t row = 0; row < size_; ++row) {
    if (change_[row] <= rounding) continue;
    const double ratio = use_[row] / change_[row];
    if (leaving == size_ || ratio < least) {
      least = ratio;
      leaving = row;
    }
  }
  if (leaving == size_) return std::nullopt;
  for (std::size_t row = 0; row < size_; ++row) {
    use_[row] = row == leaving ? least : std::max(0.0, use_[row] - least * change_[row]);
  }
  for (std::size_t element = 0; element < size_; ++element) {
    double* const of_rows = &inverse_[element * size_];
    const double pivot = of_rows[leaving] / change_[leaving];
    if (pivot == 0) continue;
    for (std::size_t row = 0; row < size_; ++row) of_rows[row] -= pivot * change_[row];
    of_rows[leaving] = pivot;
    price_[element] -= gain * pivot;
  }
  return leaving;
}

}  // namespace isochron
