// One item has nothing to share ranks with: it runs on those that are done with it first. Whatever
// else a rank pays for, it pays as well if it is a member. With virtual stages it has as many slots
// to choose from as a chunk runs one after the other.

#include "isochron/plan/lone_item.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "isochron/plan/bounds/bounds.h"
#include "isochron/plan/draft_slots.h"
#include "isochron/plan/full_slots.h"
#include "isochron/plan/pipelines/pipeline_bound.h"
#include "isochron/plan/plan_slots.h"

namespace isochron {

std::optional<FoundSlots> find_lone_item(const StepPlan& plan, const Problem& problem) {
  if (problem.num_items() != 1) return std::nullopt;
  const PipelineShape& shape = plan.topology.pipeline;
  std::optional<DraftGroup> group;
  using Score = std::pair<bool, Nanoseconds>;  // whether ranks idle where they may not; the time
  Score least{true, std::numeric_limits<Nanoseconds>::max()};
  for (const RankRange ranks : admitted_ranges(problem)) {
    if (!problem.item_fits(static_cast<std::int32_t>(ranks.size), 0)) continue;
    DraftGroup alone{.ranks = ranks, .items = {0}};
    const bool is_short = must_be_full(plan.options) && ranks.size < problem.num_ranks();
    const Score score(is_short, group_time(problem, alone));
    if (score >= least) continue;
    least = score;
    group = std::move(alone);
  }
  if (!group) return std::nullopt;
  const auto slots_with = [&](std::int32_t place) {
    DraftSlots slots(static_cast<std::size_t>(shape.group));
    slots[static_cast<std::size_t>(place)] = {*group};
    if (plan.options.counts == Counts::equal) equalize(problem, shape.group, slots);
    return slots;
  };
  if (shape.stages == 1) {
    FoundSlots found{.slots = slots_with(0)};
    found.bound = predicted_time(problem, found.slots);
    return found;
  }
  FoundSlots found;
  StepPlan trial = plan;
  Nanoseconds earliest = std::numeric_limits<Nanoseconds>::max();
  for (std::int32_t place = 0; place < shape.group; ++place) {
    DraftSlots slots = slots_with(place);
    const Nanoseconds time = predicted_time(problem, slots);
    if (time >= earliest || excess_with(problem, slots, trial) > 0) continue;
    earliest = time;
    found.slots = std::move(slots);
  }
  if (found.slots.empty()) return std::nullopt;
  found.bound =
      std::max(pipeline_bound(problem, rank_room_of(problem)), side_by_side_bound(problem));
  return found;
}

}  // namespace isochron
