#pragma once

#include <cstdint>
#include <span>

#include "isochron/core/units.h"

namespace isochron {

// Lower bounds on the number of micro-batches of `capacity` tokens that hold sequences of these
// lengths, in any order. A length above the capacity counts one micro-batch of its own. Each throws
// std::invalid_argument if the capacity or a length is below 1.

// All tokens over the capacity, rounded up. O(n).
[[nodiscard]] std::int32_t volume_bound(std::span<const Tokens> lengths, Tokens capacity);

// Martello and Toth's L2: sequences above half of the capacity never share a micro-batch, and for
// any threshold those that leave too little room beside them count in full. O(n log n).
[[nodiscard]] std::int32_t l2_bound(std::span<const Tokens> lengths, Tokens capacity);

// Fekete and Schepers' dual feasible functions: lengths rounded so that whatever fits still fits.
// O(n log n).
[[nodiscard]] std::int32_t dual_feasible_bound(std::span<const Tokens> lengths, Tokens capacity);

// The best of the three.
[[nodiscard]] std::int32_t count_bound(std::span<const Tokens> lengths, Tokens capacity);

}  // namespace isochron
