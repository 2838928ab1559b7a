#pragma once

#include <cstddef>
#include <functional>
#include <queue>
#include <vector>

namespace isochron {

// The sum of the largest `depth` of what was added.
template <class Number>
class LargestSum {
 public:
  explicit LargestSum(std::size_t depth) : depth_(depth) {}

  Number add(Number value) {
    least_first_.push(value);
    sum_ += value;
    if (least_first_.size() > depth_) {
      sum_ -= least_first_.top();
      least_first_.pop();
    }
    return sum_;
  }
  [[nodiscard]] Number sum() const { return sum_; }

 private:
  std::size_t depth_;
  Number sum_ = 0;
  std::priority_queue<Number, std::vector<Number>, std::greater<>> least_first_;
};

}  // namespace isochron
