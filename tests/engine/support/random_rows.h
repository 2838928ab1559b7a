#pragma once

#include <cstdint>
#include <vector>

#include "isochron/engine/data/rows.h"

namespace isochron {

// Tokenised rows with masks that own their memory.
struct TokenRows {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<std::uint8_t>> loss_mask;

  // Of row i in the data set that it would come from.
  [[nodiscard]] static std::int64_t id_of(std::size_t i) {
    return 1000 + 7 * static_cast<std::int64_t>(i);
  }

  // As rows of one update: w = mask / (all trained tokens), 0 for the first token of a row and if
  // nothing is trained. Refers to this object.
  [[nodiscard]] Rows view() const;
};

// Rows of the given lengths with random tokens below `vocabulary` and random masks.
[[nodiscard]] TokenRows random_rows(const std::vector<Tokens>& lengths, std::int64_t vocabulary,
                                    std::uint64_t seed);

}  // namespace isochron
