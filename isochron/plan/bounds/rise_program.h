#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace isochron {

// The largest sum of values from 0 to `most` each, under limits on weighted sums of some of them
// that come in one by one. By the simplex method: close to the largest, and close to the limits.
class RiseProgram {
 public:
  struct Part {
    std::size_t value = 0;
    double weight = 1;
  };

  explicit RiseProgram(std::vector<double> most);

  // These together exceed `limit`, which is at least 0, no longer.
  void add(std::vector<Part> parts, double limit);

  // Ends early, with values that are too large, after so many exchanges; with the largest, and for
  // good, should its numbers overflow.
  void solve(int max_pivots);

  [[nodiscard]] std::span<const double> values() const { return value_; }

  // By how much the sum grows with each limit, in the order in which they came in.
  [[nodiscard]] std::vector<double> prices() const;

 private:
  // Of the dual: limits and largest values have a price, and those of each value add up to 1.
  struct Column {
    enum class Kind { limit, most, least };
    Kind kind = Kind::most;
    std::size_t index = 0;  // of the limit or the value
  };
  struct Limit {
    std::vector<Part> parts;
    double limit = 0;
  };

  [[nodiscard]] double excess(const Limit& limit) const;
  [[nodiscard]] Column most_violated(double& by) const;
  [[nodiscard]] std::vector<double> direction(const Column& column) const;
  bool enter(const Column& column, double by);
  void begin();
  [[nodiscard]] double& inverse(std::size_t row, std::size_t value) {
    return inverse_[row * value_.size() + value];
  }

  std::vector<double> most_;
  std::vector<double> value_;
  std::vector<Limit> limits_;
  std::vector<Column> basis_;
  std::vector<double> inverse_;  // of the basis, by row and value
  std::vector<double> weight_;   // of the basis: what each of its columns counts
  bool is_over_ = false;
};

}  // namespace isochron
