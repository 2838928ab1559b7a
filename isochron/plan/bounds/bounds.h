#pragma once

#include <limits>

#include "isochron/plan/problem.h"

namespace isochron {

// No step in which ranks wait for the members of their groups only is shorter. Every bundle fits
// some size. With equal counts, and with any other rule on top, it still holds. Nothing is looked
// for beyond `enough`.
[[nodiscard]] Nanoseconds step_bound(const Problem& problem,
                                     Nanoseconds enough = std::numeric_limits<Nanoseconds>::max());

// The same with equal counts, of which it knows more.
[[nodiscard]] Nanoseconds equal_step_bound(const Problem& problem);

// A bound with free counts from one that is known, by what leaves holes in blocks of aligned
// groups.
[[nodiscard]] Nanoseconds block_bound(const Problem& problem, Nanoseconds low);

// The same where all ranks wait for each other after every slot.
[[nodiscard]] Nanoseconds slot_bound(const Problem& problem);

// The same from how few groups stand side by side, where the smallest leave ranks over and all
// ranks are alike, however they wait; else 0.
[[nodiscard]] Nanoseconds left_over_bound(const Problem& problem);

// In that case what some rank works at least, beside the fixed cost of its micro-batches; else 0.
[[nodiscard]] Nanoseconds left_over_work(const Problem& problem);

// No step in which every rank runs equally many micro-batches is shorter.
[[nodiscard]] Nanoseconds equal_count_bound(const Problem& problem);

}  // namespace isochron
