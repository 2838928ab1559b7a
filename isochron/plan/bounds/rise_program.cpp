// The primal simplex method on the dual program, which has a row for each value and gains a column
// with every limit: cover all values by limits, largest values and, where a value would fall below
// 0, what is left over, as cheaply as possible. The prices of its rows are the values. It begins
// with the largest values; the column that its prices exceed most comes in (Dantzig, 1951).

#include "isochron/plan/bounds/rise_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace isochron {

namespace {

constexpr double tolerance = 1e-12;  // of the largest value

}  // namespace

RiseProgram::RiseProgram(std::vector<double> most) : most_(std::move(most)) { begin(); }

void RiseProgram::begin() {
  value_ = most_;
  basis_.clear();
  inverse_.assign(most_.size() * most_.size(), 0);
  weight_.assign(most_.size(), 1);
  for (std::size_t i = 0; i < most_.size(); ++i) {
    inverse(i, i) = 1;
    basis_.push_back({.kind = Column::Kind::most, .index = i});
  }
}

void RiseProgram::add(std::vector<Part> parts, double limit) {
  limits_.push_back({.parts = std::move(parts), .limit = limit});
}

std::vector<double> RiseProgram::prices() const {
  std::vector<double> prices(limits_.size(), 0);
  for (std::size_t row = 0; row < basis_.size(); ++row) {
    if (basis_[row].kind == Column::Kind::limit) prices[basis_[row].index] = weight_[row];
  }
  return prices;
}

double RiseProgram::excess(const Limit& limit) const {
  double sum = -limit.limit;
  for (const auto& [value, weight] : limit.parts) sum += weight * value_[value];
  return sum;
}

RiseProgram::Column RiseProgram::most_violated(double& by) const {
  Column worst;
  by = 0;
  const auto consider = [&](double excess, Column column) {
    if (excess <= by) return;
    by = excess;
    worst = column;
  };
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    consider(excess(limits_[i]), {.kind = Column::Kind::limit, .index = i});
  }
  for (std::size_t i = 0; i < value_.size(); ++i) {
    consider(value_[i] - most_[i], {.kind = Column::Kind::most, .index = i});
    consider(-value_[i], {.kind = Column::Kind::least, .index = i});
  }
  return worst;
}

// The column in terms of the basis.
std::vector<double> RiseProgram::direction(const Column& column) const {
  const std::size_t count = value_.size();
  std::vector<double> result(count, 0);
  const Part alone{.value = column.index,
                   .weight = column.kind == Column::Kind::least ? -1.0 : 1.0};
  const std::span<const Part> parts = column.kind == Column::Kind::limit
                                          ? std::span<const Part>(limits_[column.index].parts)
                                          : std::span<const Part>(&alone, 1);
  for (std::size_t row = 0; row < count; ++row) {
    for (const auto& [value, weight] : parts) result[row] += weight * inverse_[row * count + value];
  }
  return result;
}

// False if the column has no place in the basis.
bool RiseProgram::enter(const Column& column, double by) {
  const std::size_t count = value_.size();
  const std::vector<double> along = direction(column);
  std::size_t leaving = count;
  for (std::size_t row = 0; row < count; ++row) {
    if (along[row] <= 1e-9) continue;
    if (leaving == count || weight_[row] * along[leaving] < weight_[leaving] * along[row]) {
      leaving = row;
    }
  }
  if (leaving == count) return false;
  basis_[leaving] = column;
  const double step = weight_[leaving] / along[leaving];
  double* const pivot = &inverse_[leaving * count];
  for (std::size_t i = 0; i < count; ++i) pivot[i] /= along[leaving];
  for (std::size_t row = 0; row < count; ++row) {
    if (row == leaving || along[row] == 0) continue;
    double* const other = &inverse_[row * count];
    for (std::size_t i = 0; i < count; ++i) other[i] -= along[row] * pivot[i];
    weight_[row] -= along[row] * step;
  }
  weight_[leaving] = step;
  for (std::size_t i = 0; i < count; ++i) value_[i] -= by * pivot[i];
  return true;
}

void RiseProgram::solve(int max_pivots) {
  const double largest = most_.empty() ? 0 : *std::max_element(most_.begin(), most_.end());
  for (int pivot = 0; pivot < max_pivots && !is_over_; ++pivot) {
    double by = 0;
    const Column column = most_violated(by);
    if (by <= tolerance * largest || !enter(column, by)) return;
    is_over_ = !std::all_of(value_.begin(), value_.end(),
                            [](double value) { return std::isfinite(value); });
    if (is_over_) begin();
  }
}

}  // namespace isochron
