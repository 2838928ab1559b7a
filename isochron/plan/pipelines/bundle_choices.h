#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Bundles that are alike, on groups of one size.
struct Choice {
  std::int32_t size = 1;
  double area = 0;  // ranks * cost, of all of them
  double time = 0;  // at least, of a slot with one of their items
};

struct BundleChoices {
  // Of alike bundles. Weigh areas by anything that does not fall with the time: whatever each of a
  // class chooses, they weigh no less than all of them on the best choice. The first is the bundle
  // that needs the longest slot, by itself.
  std::vector<std::vector<Choice>> classes;
  double area = 0;     // least, of all bundles
  double longest = 0;  // slot that some item needs
};

// Every bundle fits some of the sizes, which ascend.
[[nodiscard]] BundleChoices bundle_choices(const Problem& problem,
                                           std::span<const std::int32_t> sizes);

}  // namespace isochron
