#include "isochron/plan/pipelines/naive_slots.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "isochron/plan/baselines.h"
#include "isochron/plan/pipelines/cell_items.h"
#include "isochron/plan/pipelines/pipeline_bound.h"

namespace isochron {

namespace {

// Whether the longest item is known to take longer than that on its way through all stages, or what
// the busiest cell works: counts are made equal within a cell.
bool is_late(const Problem& problem, const RankRoom& room, Nanoseconds limit) {
  if (problem.has_speeds()) return false;
  const auto sizes = problem.sizes();
  const auto size = std::find_if(sizes.begin(), sizes.end(),
                                 [&](std::int32_t each) { return is_static_size(problem, each); });
  if (size == sizes.end()) return false;
  std::vector<Nanoseconds> work_of_cell(static_cast<std::size_t>(problem.num_ranks() / *size), 0);
  const PriceId price = problem.cheapest_price(*size);
  Nanoseconds longest = 0;
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    Nanoseconds& work = work_of_cell[static_cast<std::size_t>(bundle) % work_of_cell.size()];
    for (const ItemId item : problem.items_of(bundle)) {
      const Nanoseconds cost = problem.item_cost(price, item);
      longest = std::max(longest, cost);
      work += cost;
    }
  }
  // The longest item passes all stages.
  if (pass_time(problem, longest) > limit + problem.num_items()) return true;
  const Nanoseconds most = *std::max_element(work_of_cell.begin(), work_of_cell.end());
  return pipeline_bound_of(problem, room, most) > limit;
}

// The baseline packs what has to stand alone.
bool is_allowed(const Problem& problem, const DraftGroup& group) {
  const auto sizes = problem.sizes();
  const auto size = static_cast<std::int32_t>(group.ranks.size);
  return std::find(sizes.begin(), sizes.end(), size) != sizes.end() &&
         std::all_of(group.items.begin(), group.items.end(), [&](ItemId item) {
           return problem.item_fits(size, item) &&
                  (group.items.size() == 1 || !problem.is_alone(item));
         });
}

}  // namespace

std::optional<DraftSlots> find_naive_slots(const Problem& problem, const StepPlan& plan,
                                           const RankRoom& room, Nanoseconds bound,
                                           Nanoseconds limit) {
  const PlanOptions& options = problem.options();
  const bool is_limited = options.max_activation_bytes > 0;
  const bool is_whole = plan.batch.lengths.size() + static_cast<std::size_t>(plan.padding_rows) ==
                        static_cast<std::size_t>(problem.num_items());
  if (options.keep_groups != KeepGroups::none || !is_whole) return std::nullopt;
  if (!is_limited && is_late(problem, room, limit)) return std::nullopt;
  const StepPlan naive = naive_plan(plan.batch, plan.topology, plan.cost, options, bound);
  if (!is_limited && naive.predicted_step_ns >= limit) return std::nullopt;
  DraftSlots slots;
  for (const Slot& slot : naive.microbatches) {
    auto& groups = slots.emplace_back();
    for (const ContextGroup& group : slot) {
      if (group.sequences.empty()) continue;
      DraftGroup draft{.ranks = group.ranks};
      for (const SequenceId id : group.sequences) draft.items.push_back(id.value());
      if (!is_allowed(problem, draft)) return std::nullopt;
      groups.push_back(std::move(draft));
    }
  }
  return slots;
}

}  // namespace isochron
