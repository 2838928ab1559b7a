#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/steps/wide_groups.h"

namespace isochron {

// Whether groups nest: aligned, every size a multiple of the smaller ones, and each size costs the
// same wherever it stands.
[[nodiscard]] bool has_nested_groups(const Problem& problem);

// Places wide groups where groups nest. They run widest first, whatever the order in which they are
// placed, so that no rank ever waits.
class NestedBlocks {
 public:
  NestedBlocks(const Problem& problem, WideGroups& wide) : problem_(problem), wide_(wide) {}

  void reset();

  // On `size` ranks, or the next size if it ends after `target` there, or, with a far
  // reach, one that keeps the target if neither does.
  void place(BundleId bundle, std::int32_t size, Nanoseconds target, Reach reach,
             std::int64_t& work);

  // The group that each rank runs last; -1: none.
  [[nodiscard]] std::vector<std::int32_t> last_groups() const;

 private:
  // An aligned block of ranks.
  struct Block {
    Nanoseconds top = 0;     // when its last rank is done
    std::int32_t open = -1;  // its last wide group
  };

  void put(BundleId bundle, std::size_t place, std::size_t block, bool joins);

  const Problem& problem_;
  WideGroups& wide_;
  std::vector<std::vector<Block>> blocks_;  // of each size
};

}  // namespace isochron
