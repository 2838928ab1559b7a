#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace isochron {

// The largest sum of values from 0 to `most` each, under limits on sums of some of them that come
// in one by one. By the simplex method: close to the largest, and close to the limits.
class RiseProgram {
 public:
  explicit RiseProgram(std::vector<double> most);

  // The values of these together exceed `limit` no longer. At least 0.
  void add(std::vector<std::size_t> members, double limit);

  // Ends early, with values that are too large, after so many exchanges.
  void solve(int max_pivots);

  [[nodiscard]] std::span<const double> values() const { return value_; }

 private:
  // Of the dual: limits and largest values have a price, and those of each value add up to 1.
  struct Column {
    enum class Kind { limit, most, least };
    Kind kind = Kind::most;
    std::size_t index = 0;  // of the limit or the value
  };
  struct Limit {
    std::vector<std::size_t> members;
    double limit = 0;
  };

  [[nodiscard]] double excess(const Limit& limit) const;
  [[nodiscard]] Column most_violated(double& by) const;
  [[nodiscard]] std::vector<double> direction(const Column& column) const;
  bool enter(const Column& column, double by);
  [[nodiscard]] double& inverse(std::size_t row, std::size_t value) {
    return inverse_[row * value_.size() + value];
  }

  std::vector<double> most_;
  std::vector<double> value_;
  std::vector<Limit> limits_;
  std::vector<double> inverse_;  // of the basis, by row and value
  std::vector<double> weight_;   // of the basis: what each of its columns counts
};

}  // namespace isochron
