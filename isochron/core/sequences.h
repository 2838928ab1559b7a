#pragma once

#include <span>

#include "isochron/core/ids.h"
#include "isochron/core/units.h"

namespace isochron {

// A view of a batch for the planner: position i of every span speaks of sequence i. A span that an
// algorithm does not need may stay empty; the others are of one size.
struct Sequences {
  std::span<const Tokens> lengths = {};
  std::span<const Nanoseconds> costs = {};
  std::span<const PromptGroupId> groups = {};  // each from 0 to the number of sequences - 1
};

}  // namespace isochron
