#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "isochron/core/units.h"
#include "isochron/cost/hardware.h"
#include "isochron/cost/model_shape.h"

namespace isochron {

// FLOPs of packed causal batches: each token attends inside its own sequence.
//
// Counts are summed in 128-bit integers and rounded once, to double: exact up to 2^53, within 2^-53
// of the count above. (64-bit integers end at 9.2e18, a step of 16 million tokens of a 100B model.)
// They throw std::invalid_argument for a length outside 1 to 2^31-1 and an invalid shape.

// How many pairs of tokens attention is charged for in a sequence of L tokens.
enum class Triangle {
  half_square,  // L^2 / 2, as MFU is usually reported
  exact,        // L (L + 1) / 2, what a causal mask leaves
};

// Matrix products alone: projections, attention, MLP (of experts those that a token passes, without
// the router), and the output head once, tied or not. The backward is twice the forward; what is
// recomputed does not count. model_flops is both, with half squares: what `train/mfu` means.
[[nodiscard]] double forward_flops(const ModelShape& shape, std::span<const Tokens> lengths,
                                   Triangle triangle = Triangle::half_square);
[[nodiscard]] double backward_flops(const ModelShape& shape, std::span<const Tokens> lengths,
                                    Triangle triangle = Triangle::half_square);
[[nodiscard]] double model_flops(const ModelShape& shape, std::span<const Tokens> lengths);

// The two coefficients of a forward: FLOPs(L) = linear * L + attention * L^2, with half squares.
[[nodiscard]] std::int64_t linear_flops_per_token(const ModelShape& shape);
[[nodiscard]] std::int64_t attention_flops_per_square(const ModelShape& shape);

// Forward and backward by verl's count, which takes vocabulary * hidden twice; for comparison only.
// Also throws std::invalid_argument for a shape with experts, which the count does not define.
[[nodiscard]] double verl_flops(const ModelShape& shape, std::span<const Tokens> lengths);

// Model FLOPs utilization: the share of the peak of all devices. None if the hardware or its peak
// is unknown. Throws std::invalid_argument for FLOPs below 0, no time or no device.
[[nodiscard]] std::optional<double> mfu(double flops, double seconds,
                                        const std::optional<Hardware>& hardware,
                                        std::int64_t devices);

}  // namespace isochron
