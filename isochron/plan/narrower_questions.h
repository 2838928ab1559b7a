#pragma once

#include <memory>
#include <vector>

#include "isochron/plan/draft_slots.h"
#include "isochron/plan/problem.h"

namespace isochron {

// A question whose answers are answers to another one: the same sequences with less choice, or with
// another way to wait.
struct NarrowerQuestion {
  std::unique_ptr<Problem> problem;
  // The items of the other question in each of this one's; empty: the same.
  std::vector<std::vector<ItemId>> parts = {};

  // Slots of this question as those of the other one.
  [[nodiscard]] DraftSlots answer(const Problem& other, DraftSlots slots) const;
};

// Those that a search may be ahead on. Each holds every bundle.
[[nodiscard]] std::vector<NarrowerQuestion> narrower_questions(const Problem& problem);

}  // namespace isochron
