#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Bundles that are alike, on groups of one size. Their longest items by themselves, longest first,
// then the rest.
struct Choice {
  struct Part {
    double area = 0;  // ranks * cost, of all of them; faster ranks that wait are more ranks
    double time = 0;  // at least, of a slot with one of these items, as on the fastest rank
  };
  static constexpr std::size_t max_parts = 5;

  std::int32_t size = 1;
  double area = 0;  // of all parts
  std::size_t num_parts = 0;
  std::array<Part, max_parts> parts = {};

  [[nodiscard]] std::span<const Part> all() const { return {parts.data(), num_parts}; }
  // Of the longest slot that each of the bundles needs, at least.
  [[nodiscard]] double time() const { return parts.front().time; }
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
