#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// An item on a group of ranks.
struct SizedItem {
  Nanoseconds cost = 0;        // without what is fixed
  Tokens tokens = 0;           // padded
  std::int32_t sequences = 0;  // if they are limited
  ItemId id = 0;
};

// These items on ranks that have a price, the dearest first.
[[nodiscard]] std::vector<SizedItem> sized_items(const Problem& problem, RankRange ranks,
                                                 std::span<const ItemId> items);

}  // namespace isochron
