#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isochron/check/plan_view.h"

namespace isochron::check {

// Whether dynamic:powers has groups of this size.
[[nodiscard]] bool is_power_size(const PlanView& view, std::int64_t size);

// Sizes that a group with sequences may have, ascending: by the context, the least and largest
// size, and an exchange. A size that can run anywhere can run from rank 0 on, where no border of
// the machine is nearer than it must be.
[[nodiscard]] std::vector<std::int64_t> group_sizes(const PlanView& view);

// Whether a group of one of these sizes holds the sequences together. More ranks never hold less,
// except that one rank needs no chunks: it is enough to look at one rank and at the largest size.
[[nodiscard]] bool fits_some_size(const PlanView& view, std::span<const std::int64_t> sizes,
                                  std::span<const SequenceId> sequences);

}  // namespace isochron::check
