#pragma once

#include <vector>

#include "isochron/core/units.h"

namespace isochron {

// A dual feasible function of the part of the capacity that an item fills: over whatever shares a
// micro-batch it adds up to at most 1 (Fekete and Schepers, 2001).
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

// The volume first, then those that see large items.
inline std::vector<ShareRule> share_rules() {
  using Kind = ShareRule::Kind;
  std::vector<ShareRule> rules = {{}};
  for (const double edge : {0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5}) {
    rules.push_back({.kind = Kind::threshold, .value = edge});
  }
  for (const double steps : {1, 2, 3, 4, 5}) rules.push_back({.kind = Kind::steps, .value = steps});
  return rules;
}

}  // namespace isochron
