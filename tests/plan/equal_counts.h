#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "tests/plan/singles.h"

namespace isochron {

// Sequences with equal counts on ranks of 100 tokens, a nanosecond each and 10 for a micro-batch.
inline Problem equal_counts(const std::string& context, const std::vector<Tokens>& lengths,
                            std::int32_t ranks) {
  const Topology topology{.ranks = ranks, .capacity = 100};
  return {singles(lengths), topology, plain_cost(10),
          resolved({.context = context, .counts = Counts::equal}, topology)};
}

inline DraftGroup on(std::int64_t first, std::int64_t size, std::vector<ItemId> items) {
  return {.ranks = {.first = first, .size = size}, .items = std::move(items)};
}

}  // namespace isochron
