#pragma once

#include <algorithm>
#include <limits>

namespace isochron {

// What the questions on the way to one plan may take together, beside the first search: nanoseconds
// as they are estimated, never measured, so that equal inputs give equal plans. Without a limit
// until one is known.
class Purse {
 public:
  // The first limit counts: later ones are those of other questions about the same step.
  void limit(double nanoseconds) {
    if (!is_limited_) left_ = nanoseconds;
    is_limited_ = true;
  }

  [[nodiscard]] double left() const { return left_; }
  void take(double nanoseconds) { left_ = std::max(0.0, left_ - nanoseconds); }

  // Takes what something costs, if there is as much; whatever is left, if it may save many times
  // that.
  [[nodiscard]] bool pays(double nanoseconds, double saved = 0) {
    constexpr double many = 8;
    if (nanoseconds > left_ && many * nanoseconds > saved) return false;
    take(nanoseconds);
    return true;
  }

 private:
  bool is_limited_ = false;
  double left_ = std::numeric_limits<double>::infinity();
};

}  // namespace isochron
