#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/problem.h"

namespace isochron {

// Sequences of these lengths, none of which stays with another.
inline Work singles(const std::vector<Tokens>& lengths) {
  Work work;
  work.lengths = lengths;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    work.items.push_back({SequenceId(static_cast<std::int32_t>(i))});
    work.bundles.push_back({static_cast<ItemId>(i)});
  }
  return work;
}

}  // namespace isochron
