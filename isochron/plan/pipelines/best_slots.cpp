#include "isochron/plan/pipelines/best_slots.h"

#include <algorithm>
#include <utility>

#include "isochron/plan/pipelines/reorder.h"
#include "isochron/plan/plan_slots.h"

namespace isochron {

namespace {

// Slots of placeholders alone.
std::int32_t num_idle_slots(const DraftSlots& slots) {
  return static_cast<std::int32_t>(std::count_if(slots.begin(), slots.end(), [](const auto& slot) {
    return std::all_of(slot.begin(), slot.end(),
                       [](const DraftGroup& group) { return group.items.empty(); });
  }));
}

}  // namespace

BestSlots::BestSlots(const Problem& problem, const StepPlan& plan, std::int64_t work)
    : problem_(problem), trial_(plan), work_(work) {}

bool BestSlots::consider(Grid grid) {
  if (grid.is_full && !is_limited()) return is_best(std::move(grid.slots), grid.time, 0);
  equalize(problem_, trial_.topology.pipeline.group, grid.slots);
  return consider(std::move(grid.slots));
}

bool BestSlots::consider(DraftSlots slots) {
  if (is_limited()) return consider_reordered(std::move(slots));
  const Nanoseconds time = predicted_time(problem_, slots);
  return is_best(std::move(slots), time, 0);
}

bool BestSlots::consider_reordered(DraftSlots slots) {
  slots = reordered(std::move(slots));
  const std::int64_t excess = excess_with(problem_, slots, trial_);
  const Nanoseconds time = predicted_time(problem_, slots);
  return is_best(std::move(slots), time, excess);
}

DraftSlots BestSlots::reordered(DraftSlots slots) {
  const bool is_fixed = context_mode(problem_.options().context).kind == ContextMode::Kind::fixed;
  const bool is_by_cell = is_fixed && problem_.options().sync == Sync::step;
  if (!is_by_cell) return reordered_slots(problem_, trial_, std::move(slots), work_);
  // Where all cells sit the same slot out, it is none.
  DraftSlots ordered = reordered_cells(problem_, slots, work_);
  return num_idle_slots(ordered) < trial_.topology.pipeline.group ? ordered : slots;
}

bool BestSlots::is_best(DraftSlots slots, Nanoseconds time, std::int64_t excess) {
  if (!best_.empty() && std::pair(excess, time) >= std::pair(excess_, time_)) return false;
  excess_ = excess;
  time_ = time;
  best_ = std::move(slots);
  return true;
}

}  // namespace isochron
