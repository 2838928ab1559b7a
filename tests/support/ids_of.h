#pragma once

#include <cstdint>
#include <vector>

#include "isochron/core/ids.h"

namespace isochron {

// Lists of ids as bare numbers, which a test can write down.
inline std::vector<std::vector<std::int32_t>> ids_of(
    const std::vector<std::vector<SequenceId>>& lists) {
  std::vector<std::vector<std::int32_t>> numbers;
  for (const std::vector<SequenceId>& list : lists) {
    numbers.emplace_back();
    for (const SequenceId id : list) numbers.back().push_back(id.value());
  }
  return numbers;
}

}  // namespace isochron
