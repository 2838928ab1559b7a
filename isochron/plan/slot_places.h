#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Where the groups of a slot stand.
class SlotPlaces {
 public:
  explicit SlotPlaces(const Problem& problem);

  // Whether groups fit side by side as soon as their sizes add up.
  [[nodiscard]] bool is_simple() const { return is_simple_; }

  // First ranks for groups of these sizes, in their order, or nothing if they do not fit: widest
  // first, each at its first free place, inside a node if it can.
  [[nodiscard]] std::vector<std::int32_t> find(const std::vector<std::int32_t>& sizes) const;

 private:
  [[nodiscard]] std::vector<std::int32_t> places_in_row(
      const std::vector<std::int32_t>& sizes, const std::vector<std::size_t>& order) const;

  const Problem& problem_;
  bool is_simple_;
};

}  // namespace isochron
