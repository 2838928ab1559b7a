#pragma once

#include <array>

#include "isochron/core/units.h"

namespace isochron {

// A dual feasible function of the part of a micro-batch that an item fills: whatever shares a
// micro-batch, its values add up to at most 1 (Fekete and Schepers, 2001). Bounds give each item
// that share of what a micro-batch costs.
struct ShareRule {
  enum class Kind { volume, threshold, steps };
  Kind kind = Kind::volume;
  double value = 0;  // threshold: part of the capacity, at most 1/2; steps: their number

  [[nodiscard]] double operator()(Tokens tokens, Tokens capacity) const {
    if (tokens >= capacity) return 1;
    const double part = static_cast<double>(tokens) / static_cast<double>(capacity);
    if (kind == Kind::volume) return part;
    if (kind == Kind::threshold) {
      const auto edge = static_cast<Tokens>(value * static_cast<double>(capacity));
      if (tokens > capacity - edge) return 1;
      return tokens < edge ? 0 : part;
    }
    const auto steps = static_cast<Tokens>(value);
    const Tokens scaled = (steps + 1) * tokens;
    if (scaled % capacity == 0) return part;
    const Tokens whole = scaled / capacity;
    return static_cast<double>(whole) / static_cast<double>(steps);
  }
};

// Those worth a try beside the volume.
inline constexpr std::array<ShareRule, 15> share_rules{{
    {.kind = ShareRule::Kind::threshold, .value = 0.05},
    {.kind = ShareRule::Kind::threshold, .value = 0.1},
    {.kind = ShareRule::Kind::threshold, .value = 0.15},
    {.kind = ShareRule::Kind::threshold, .value = 0.2},
    {.kind = ShareRule::Kind::threshold, .value = 0.25},
    {.kind = ShareRule::Kind::threshold, .value = 0.3},
    {.kind = ShareRule::Kind::threshold, .value = 0.35},
    {.kind = ShareRule::Kind::threshold, .value = 0.4},
    {.kind = ShareRule::Kind::threshold, .value = 0.45},
    {.kind = ShareRule::Kind::threshold, .value = 0.5},
    {.kind = ShareRule::Kind::steps, .value = 1},
    {.kind = ShareRule::Kind::steps, .value = 2},
    {.kind = ShareRule::Kind::steps, .value = 3},
    {.kind = ShareRule::Kind::steps, .value = 4},
    {.kind = ShareRule::Kind::steps, .value = 5},
}};

}  // namespace isochron
