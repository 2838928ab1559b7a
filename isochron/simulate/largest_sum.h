#pragma once

#include <cstddef>
#include <vector>

namespace isochron {

// The sum of the largest `depth` of what was added. Fast for a few.
template <class Number>
class LargestSum {
 public:
  explicit LargestSum(std::size_t depth) : depth_(depth) { largest_first_.reserve(depth + 1); }

  Number add(Number value) {
    if (largest_first_.size() == depth_) {
      if (depth_ == 0 || value <= largest_first_.back()) return sum_;
      sum_ -= largest_first_.back();
      largest_first_.pop_back();
    }
    auto place = largest_first_.end();
    while (place != largest_first_.begin() && *(place - 1) < value) --place;
    largest_first_.insert(place, value);
    sum_ += value;
    return sum_;
  }
  [[nodiscard]] Number sum() const { return sum_; }

 private:
  std::size_t depth_;
  Number sum_ = 0;
  std::vector<Number> largest_first_;
};

}  // namespace isochron
