#pragma once

#include <span>
#include <vector>

#include "isochron/plan/bundles/cover_basis.h"
#include "isochron/plan/problem.h"

namespace isochron {

// The linear program that covers all bundles with as few blocks as possible, by the simplex method.
// What blocks may hold comes in one by one; prices are those of its dual.
class CoverProgram {
 public:
  struct Part {
    BundleId bundle = 0;
    double part = 0;  // of the bundle
  };

  // Begins with one kind of block for each bundle, which holds so much of it: more than nothing.
  void begin(std::span<const double> parts);
  // A block of bundles that begin() has whole, and no such block had before, replaces theirs.
  void join(std::span<const BundleId> bundles);

  [[nodiscard]] double num_blocks() const;
  [[nodiscard]] std::span<const double> prices() const {
    return basis_.prices().first(basis_.size());
  }
  // One step with a block of such content. False if nothing gets better.
  bool enter(std::span<const Part> content);
  // One step in which more of a bundle may be covered than there is: its price was below 0.
  bool enter_surplus(BundleId bundle);

 private:
  bool exchange(double gain, bool is_surplus);

  CoverBasis basis_;
  std::vector<bool> surplus_;  // the row is no block
};

}  // namespace isochron
