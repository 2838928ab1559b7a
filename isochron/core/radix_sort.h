#pragma once

#include <cstdint>
#include <vector>

namespace isochron {

// Positions of `keys` by (key, position), ascending. Linear: one pass for each digit in which the
// keys differ. Uses the memory of `keys`.
[[nodiscard]] std::vector<std::int32_t> ascending_positions(std::vector<std::uint64_t> keys);

}  // namespace isochron
