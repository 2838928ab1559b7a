#pragma once

#include <cstddef>
#include <span>
#include <string_view>

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

// What every algorithm asks of the spans it uses. Each throws std::invalid_argument("[where] ..")
// with the position and the value: a negative cost or a total above 2^62; a length outside 1 to
// 2^31-1; a group outside 0 to count-1; a number of entries other than `count`.
void check_costs(std::string_view where, std::span<const Nanoseconds> costs);
void check_lengths(std::string_view where, std::span<const Tokens> lengths, std::size_t count);
void check_groups(std::string_view where, std::span<const PromptGroupId> groups, std::size_t count);

}  // namespace isochron
