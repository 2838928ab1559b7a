#pragma once

#include <cstdint>

#include "isochron/core/units.h"
#include "isochron/cost/model_shape.h"
#include "isochron/engine/train/recipe.h"

namespace isochron {

// How far groups of ranks that share sequences reach.
struct ContextReach {
  std::int32_t largest_group = 1;  // ranks
  Tokens longest = 0;              // tokens of the longest sequence that some group holds

  bool operator==(const ContextReach&) const = default;
};

// The groups that a recipe admits on `ranks` ranks of `capacity` tokens, as far as can be said
// before any device is known: all that the links of engine.cost admit, or all where the costs are
// analytic. Throws std::invalid_argument if engine.context_parallel_size does not divide the ranks,
// or engine.cost has no link for it.
[[nodiscard]] ContextReach context_reach(const Recipe& recipe, std::int32_t ranks, Tokens capacity);

// Throws std::invalid_argument if engine.cost lets groups exchange heads that the model does not
// have: what the group size divides has to divide its heads of keys and values.
void require_executable_exchanges(const Recipe& recipe, const ModelShape& model);

}  // namespace isochron
