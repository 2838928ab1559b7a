// The simplex method with the inverse of the basis, which begins with every element alone.
//
// Sets are looked at a few at a time, and the one that saves most of these enters. Where fewer sets
// are asked for than before, those of the basis that are not are dear, so that they leave.

#include "isochron/plan/bundles/set_program.h"

#include <algorithm>

namespace isochron {

namespace {

constexpr double rounding = 1e-9;
constexpr double dear = 5;  // what a set of many elements costs more, by what one costs alone

}  // namespace

SetProgram::SetProgram(std::size_t num_elements, double alone, std::span<const Set> sets)
    : size_(num_elements),
      alone_(alone),
      inverse_(num_elements * num_elements, 0),
      use_(num_elements, 1),
      price_(num_elements + 1, 0),
      change_(num_elements, 0) {
  for (std::size_t i = 0; i < size_; ++i) {
    sets_.emplace_back(size_, alone).members[0] = static_cast<std::uint8_t>(i);
    basis_.push_back(i);
    inverse_[i * size_ + i] = 1;
  }
  sets_.insert(sets_.end(), sets.begin(), sets.end());
}

std::span<const double> SetProgram::prices(std::size_t count) {
  const std::size_t end = size_ + count;
  begin(end);
  // About what it takes; without an end a basis could come again.
  for (std::size_t left = 50 + 16 * size_; left > 0; --left) {
    const std::size_t entering = find_entering(end);
    if (entering == end || !enter(entering)) break;
  }
  lower(end);
  return std::span<const double>(price_).first(size_);
}

std::vector<double> SetProgram::uses(std::size_t count) const {
  std::vector<double> uses(count, 0);
  for (std::size_t row = 0; row < size_; ++row) {
    const std::size_t set = basis_[row];
    if (set >= size_ && set < size_ + count) uses[set - size_] = use_[row];
  }
  return uses;
}

// What the elements cost in the basis at hand.
void SetProgram::begin(std::size_t end) {
  std::fill(price_.begin(), price_.end(), 0.0);
  for (std::size_t row = 0; row < size_; ++row) {
    const double cost = sets_[basis_[row]].cost + (basis_[row] < end ? 0 : dear * alone_);
    for (std::size_t i = 0; i < size_; ++i) price_[i] += inverse_[i * size_ + row] * cost;
  }
}

double SetProgram::saving(const Set& set) const {
  double sum = -set.cost;
  for (const std::uint8_t member : set.members) sum += price_[member];
  return sum;
}

// The best of a few, from where the last look ended.
std::size_t SetProgram::find_entering(std::size_t end) {
  constexpr std::size_t few = 128;
  std::size_t best = end;
  double most = rounding;
  if (next_ >= end) next_ = 0;
  for (std::size_t looked = 0; looked < end && best == end;) {
    const std::size_t last = std::min({end, next_ + few, next_ + end - looked});
    looked += last - next_;
    for (; next_ < last; ++next_) {
      const double saved = saving(sets_[next_]);
      if (saved <= most) continue;
      most = saved;
      best = next_;
    }
    if (next_ == end) next_ = 0;
  }
  return best;
}

bool SetProgram::enter(std::size_t set) {
  std::fill(change_.begin(), change_.end(), 0.0);
  for (const std::uint8_t member : sets_[set].members) {
    if (member == size_) continue;
    const double* const inverse = &inverse_[member * size_];
    for (std::size_t row = 0; row < size_; ++row) change_[row] += inverse[row];
  }
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
  if (leaving == size_) return false;
  for (std::size_t row = 0; row < size_; ++row) {
    use_[row] = row == leaving ? least : std::max(0.0, use_[row] - least * change_[row]);
  }
  const double saved = saving(sets_[set]);
  for (std::size_t i = 0; i < size_; ++i) {
    double* const inverse = &inverse_[i * size_];
    const double pivot = inverse[leaving] / change_[leaving];
    if (pivot == 0) continue;
    for (std::size_t row = 0; row < size_; ++row) inverse[row] -= pivot * change_[row];
    inverse[leaving] = pivot;
    price_[i] -= saved * pivot;
  }
  basis_[leaving] = set;
  return true;
}

// What is left where the steps ended early, and what was rounded.
void SetProgram::lower(std::size_t end) {
  for (std::size_t k = 0; k < end; ++k) {
    const double saved = saving(sets_[k]);
    if (saved > 0) price_[sets_[k].members[0]] -= saved;
  }
}

}  // namespace isochron
