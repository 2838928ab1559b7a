#pragma once

#include <memory>
#include <optional>
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

// Every prompt in one micro-batch: few items, which are soon planned. None where a bundle has a
// sequence that is alone, or none of the sizes holds one.
[[nodiscard]] std::optional<NarrowerQuestion> find_whole_prompts(const Problem& problem);

// Those that a search may be ahead on, but for whole prompts where ranks wait for the members of
// their groups only. Each holds every bundle.
[[nodiscard]] std::vector<NarrowerQuestion> narrower_questions(const Problem& problem);

}  // namespace isochron
