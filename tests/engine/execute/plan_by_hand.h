#pragma once

#include <cstdint>
#include <vector>

#include "isochron/step/step_plan.h"

// Plans by hand, with a capacity of 1000 tokens and no cost.

namespace isochron {

struct HandGroup {
  std::int64_t first_rank = 0;
  std::int64_t num_ranks = 1;
  std::vector<int> sequences;  // none: a placeholder
  std::optional<ContextKind> exchange = {};
};

inline StepPlan plan_of(const std::vector<Tokens>& lengths, std::int32_t ranks,
                        const std::vector<std::vector<HandGroup>>& slots) {
  StepPlan plan;
  plan.status = Status::feasible;
  plan.topology = {.ranks = ranks, .capacity = 1000};
  plan.options = resolved({.context = "dynamic:any"}, plan.topology);
  plan.batch.lengths = lengths;
  plan.peak_activation_bytes.assign(static_cast<std::size_t>(ranks), 0);
  for (const auto& groups : slots) {
    Slot& slot = plan.microbatches.emplace_back();
    for (const HandGroup& given : groups) {
      ContextGroup& group = slot.emplace_back();
      group.ranks = {given.first_rank, given.num_ranks};
      for (const int sequence : given.sequences) group.sequences.emplace_back(sequence);
      group.exchange = given.exchange;
    }
  }
  return plan;
}

// Groups of one rank: the sequences of each slot and rank.
inline StepPlan one_rank_groups(const std::vector<Tokens>& lengths, std::int32_t ranks,
                                const std::vector<std::vector<std::vector<int>>>& slots) {
  std::vector<std::vector<HandGroup>> groups;
  for (const auto& ranks_of_slot : slots) {
    auto& slot = groups.emplace_back();
    for (std::size_t rank = 0; rank < ranks_of_slot.size(); ++rank) {
      if (ranks_of_slot[rank].empty()) continue;
      slot.push_back({.first_rank = static_cast<std::int64_t>(rank),
                      .num_ranks = 1,
                      .sequences = ranks_of_slot[rank]});
    }
  }
  return plan_of(lengths, ranks, groups);
}

}  // namespace isochron
