#include "isochron/engine/execute/turns.h"

#include "isochron/layout/packed_layout.h"

namespace isochron {

std::vector<Turn> turns_of(const StepPlan& plan, std::int32_t rank) {
  std::vector<Turn> turns;
  for (std::size_t slot = 0; slot < plan.microbatches.size(); ++slot) {
    for (const ContextGroup& group : plan.microbatches[slot]) {
      const bool is_member =
          group.ranks.first <= rank && rank < group.ranks.first + group.ranks.size;
      if (is_member && !group.sequences.empty()) {
        turns.push_back({static_cast<std::int32_t>(slot), &group});
      }
    }
  }
  return turns;
}

bool may_overlap_reduction(const StepPlan& plan, std::int32_t rank) {
  const std::vector<Turn> turns = turns_of(plan, rank);
  if (turns.empty()) return false;
  const RankRange members = turns.back().group->ranks;
  for (std::int64_t member = members.first; member < members.first + members.size; ++member) {
    const auto last = turns_of(plan, static_cast<std::int32_t>(member)).back();
    if (last.slot != turns.back().slot) return false;
  }
  return true;
}

std::vector<PredictedToken> predicted_tokens(const StepPlan& plan, std::int32_t rank) {
  const std::vector<Tokens> lengths = all_lengths(plan);
  std::vector<PredictedToken> predicted;
  for (const Turn& turn : turns_of(plan, rank)) {
    const ContextGroup& group = *turn.group;
    std::vector<Tokens> lengths_of_group;
    for (const SequenceId sequence : group.sequences) {
      lengths_of_group.push_back(lengths[sequence.index()]);
    }
    const PackedLayout layout = packed_layout(
        lengths_of_group, {.context_size = static_cast<std::int32_t>(group.ranks.size),
                           .context_rank = static_cast<std::int32_t>(rank - group.ranks.first)});
    std::int64_t start = 0;  // of the tokens of a sequence, among those of the group
    for (std::size_t i = 0; i < group.sequences.size(); start += lengths_of_group[i++]) {
      if (group.sequences[i].index() >= plan.batch.lengths.size()) continue;
      const auto end = static_cast<std::size_t>(layout.cu_seqlens[i + 1] / group.ranks.size);
      for (auto t = static_cast<std::size_t>(layout.cu_seqlens[i] / group.ranks.size); t < end;
           ++t) {
        if (layout.target[t] < 0) continue;
        predicted.push_back(
            {group.sequences[i], static_cast<std::int32_t>(layout.target[t] - start)});
      }
    }
  }
  return predicted;
}

}  // namespace isochron
