#pragma once

#include <cstdint>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// Gives every rank a micro-batch in every slot, where all ranks wait for each other: by taking from
// other groups, by sharing what stands beside a rank that idles, or from slots of one sequence a
// micro-batch, which are searched for once.
class EqualCounts {
 public:
  // `bound` holds for the step; `effort` is for that search.
  EqualCounts(const Problem& problem, Nanoseconds bound, std::int64_t effort)
      : problem_(problem), bound_(bound), effort_(effort) {}

  // The earliest that is found for these slots.
  [[nodiscard]] DraftSlots answer(DraftSlots slots);

 private:
  const DraftSlots& apart(Nanoseconds least, Nanoseconds time);

  const Problem& problem_;
  Nanoseconds bound_;
  std::int64_t effort_;
  bool is_searched_ = false;
  DraftSlots apart_;
};

}  // namespace isochron
