#pragma once

#include <span>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/units.h"

namespace isochron {

// The order in which a rank runs what it has.
enum class Order {
  index,       // as in the batch
  small_ends,  // cheap at both ends, expensive in the middle: short warm-up and drain of a pipeline
};

template <>
struct EnumNames<Order> {
  static constexpr std::array<std::pair<Order, std::string_view>, 2> values = {
      {{Order::index, "index"}, {Order::small_ends, "small_ends"}}};
};

// Positions of `costs` with the small ones at both ends: ascending by (cost, position), the even
// ones of these in that order, then the odd ones backwards. 9 1 5 3 7 -> 1 5 9 7 3.
[[nodiscard]] std::vector<std::size_t> small_ends(std::span<const Nanoseconds> costs);

}  // namespace isochron
