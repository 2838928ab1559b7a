#pragma once

#include <cstdint>
#include <vector>

namespace isochron {

// Positions of `keys` by (key, position), ascending. Linear: one pass for each byte in which the
// keys differ; on 4,000 costs of a batch four times as fast as std::sort. Uses the memory of
// `keys`.
[[nodiscard]] std::vector<std::int32_t> ascending_positions(std::vector<std::uint64_t> keys);

}  // namespace isochron
