// One item has nothing to share ranks with: it runs on those that are done with it first. Whatever
// else a rank pays for, it pays as well if it is a member.

#include "isochron/plan/lone_item.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/plan_memory.h"
#include "isochron/plan/plan_slots.h"

namespace isochron {

std::optional<FoundSlots> find_lone_item(const StepPlan& plan, const Problem& problem) {
  const PipelineShape& shape = plan.topology.pipeline;
  if (problem.num_items() != 1 || shape.virtual_ > 1) return std::nullopt;
  const bool has_equal_counts = plan.options.counts == Counts::equal;
  std::optional<DraftGroup> best;
  using Score = std::pair<bool, Nanoseconds>;  // whether ranks idle where they may not; the time
  Score least{true, std::numeric_limits<Nanoseconds>::max()};
  for (const RankRange ranks : admitted_ranges(problem)) {
    if (!problem.item_fits(static_cast<std::int32_t>(ranks.size), 0)) continue;
    DraftGroup group{.ranks = ranks, .items = {0}};
    const bool is_short = must_be_full(plan.options) && ranks.size < problem.num_ranks();
    const Score score(is_short, group_time(problem, group));
    if (score >= least) continue;
    least = score;
    best = std::move(group);
  }
  if (!best) return std::nullopt;
  FoundSlots found{.slots = {{*std::move(best)}}};
  if (has_equal_counts) equalize(problem, 1, found.slots);
  if (shape.stages == 1) {
    found.bound = predicted_time(problem, found.slots);
    return found;
  }
  StepPlan trial = plan;
  set_slots(problem, found.slots, trial);
  set_prediction(trial);
  if (memory_excess(trial) > 0) return std::nullopt;
  found.bound =
      std::max(pipeline_bound(problem, rank_room_of(problem)), side_by_side_bound(problem));
  return found;
}

}  // namespace isochron
