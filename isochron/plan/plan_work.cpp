#include "isochron/plan/plan_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "isochron/pad/pad.h"

namespace isochron {

std::size_t num_units(const StepPlan& plan) {
  return plan.options.keep_groups == KeepGroups::none ? plan.batch.lengths.size()
                                                      : plan.batch.group_names.size();
}

std::size_t unit_of(const StepPlan& plan, std::size_t sequence) {
  return plan.options.keep_groups == KeepGroups::none ? sequence
                                                      : plan.batch.groups[sequence].index();
}

std::int64_t num_rows_of(const StepPlan& plan, std::size_t num_kept) {
  if (plan.options.keep_groups == KeepGroups::none) return static_cast<std::int64_t>(num_kept);
  std::int64_t num_rows = 0;
  for (std::size_t i = 0; i < plan.batch.lengths.size(); ++i) {
    num_rows += unit_of(plan, i) < num_kept ? 1 : 0;
  }
  return num_rows;
}

bool must_divide(const PlanOptions& options) {
  return *options.pad != Pad::uneven && options.pad_multiple > 1;
}

Work work_of(const StepPlan& plan, std::size_t num_kept) {
  Work work;
  work.lengths = all_lengths(plan);
  work.extra_costs = plan.batch.extra_cost_ns;
  if (!work.extra_costs.empty()) work.extra_costs.resize(work.lengths.size(), 0);
  const std::size_t num_rows = plan.batch.lengths.size();
  std::vector<SequenceId> kept;
  for (std::size_t i = 0; i < work.lengths.size(); ++i) {
    if (i < num_rows && unit_of(plan, i) >= num_kept) continue;
    kept.emplace_back(static_cast<std::int32_t>(i));
  }
  if (plan.options.keep_groups != KeepGroups::microbatch) {
    work.items.reserve(kept.size(), kept.size());
    for (const SequenceId id : kept) work.items.push_back({id});
  }
  if (plan.options.keep_groups == KeepGroups::none) {
    work.bundles.reserve(kept.size(), kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) work.bundles.push_back({static_cast<ItemId>(i)});
    return work;
  }
  // Groups by when they come first, each as places in `kept`; a padding row is one by itself.
  std::vector<std::vector<ItemId>> groups;
  std::vector<std::int32_t> place_of_group(plan.batch.group_names.size(), -1);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::size_t row = kept[i].index();
    auto place = static_cast<std::int32_t>(groups.size());
    if (row < num_rows) {
      std::int32_t& known = place_of_group[plan.batch.groups[row].index()];
      if (known < 0) known = place;
      place = known;
    }
    if (place == std::ssize(groups)) groups.emplace_back();
    groups[static_cast<std::size_t>(place)].push_back(static_cast<ItemId>(i));
  }
  for (const std::vector<ItemId>& group : groups) {
    if (plan.options.keep_groups == KeepGroups::rank) {
      work.bundles.push_back(group);
      continue;
    }
    work.bundles.push_back({static_cast<ItemId>(work.items.size())});
    work.items.push_back({});
    for (const ItemId place : group) work.items.extend(kept[static_cast<std::size_t>(place)]);
  }
  return work;
}

std::string item_text(const StepPlan& plan, std::span<const SequenceId> item) {
  if (item.size() == 1) {
    const std::size_t i = item.front().index();
    if (i >= plan.batch.lengths.size()) {
      return fmt::format("a padding row of {} tokens", padding_row_length);
    }
    return fmt::format("sequence {} of {} tokens", i, plan.batch.lengths[i]);
  }
  Tokens tokens = 0;
  for (const SequenceId id : item) tokens += plan.batch.lengths[id.index()];
  return fmt::format("the group of sequence {}, {} sequences of {} tokens,", item.front().value(),
                     item.size(), tokens);
}

std::optional<std::string> apply_oversize(const StepPlan& plan, Problem& problem) {
  const PlanOptions& options = plan.options;
  const bool is_dynamic = context_mode(options.context).kind != ContextMode::Kind::fixed;
  if (problem.sizes().empty() && (!is_dynamic || options.oversize != Oversize::alone)) {
    const std::int32_t last =
        options.max_context_size == 0 ? plan.topology.ranks : options.max_context_size;
    for (std::int32_t size = options.min_context_size; is_dynamic && size <= last; ++size) {
      if (problem.price_of({.first = 0, .size = size}) < 0) continue;
      return fmt::format("context {} has no groups of {} to {} ranks where there are {}",
                         options.context, options.min_context_size, last, plan.topology.ranks);
    }
    return fmt::format("the cost model admits no group that context {} allows", options.context);
  }
  const std::int32_t widest = problem.sizes().empty() ? 0 : problem.sizes().back();
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    const auto ids = problem.sequences_of(item);
    const auto sizes = problem.sizes();
    if (std::any_of(sizes.begin(), sizes.end(),
                    [&](std::int32_t size) { return problem.item_fits(size, item); })) {
      continue;
    }
    if (options.max_sequences > 0 &&
        static_cast<std::int64_t>(ids.size()) > options.max_sequences) {
      return fmt::format("{} exceeds max_sequences {}", item_text(plan, ids),
                         options.max_sequences);
    }
    if (options.oversize != Oversize::alone) {
      return fmt::format(
          "{} needs more than the capacity {} on each of {} ranks, the most that a "
          "group may have",
          item_text(plan, ids), plan.topology.capacity, widest);
    }
    // On all ranks where sizes are dynamic, whatever the largest size.
    const std::int32_t alone_size = is_dynamic ? plan.topology.ranks : widest;
    if (problem.cheapest_price(alone_size) < 0) {
      return fmt::format(
          "{} exceeds the capacity {} and cannot run alone: the cost model has no "
          "exchange for all {} ranks",
          item_text(plan, ids), plan.topology.capacity, plan.topology.ranks);
    }
    problem.set_alone(item, alone_size);
  }
  for (BundleId bundle = 0; bundle < problem.num_bundles(); ++bundle) {
    const auto sizes = problem.sizes();
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](std::int32_t size) { return problem.fits(size, bundle); })) {
      const ItemId first = problem.items_of(bundle).front();
      return fmt::format("no group of ranks can run all sequences of the group of {}",
                         item_text(plan, problem.sequences_of(first)));
    }
  }
  return std::nullopt;
}

void set_oversized(const Problem& problem, StepPlan& plan) {
  plan.oversized.clear();
  for (ItemId item = 0; item < problem.num_items(); ++item) {
    if (!problem.is_alone(item)) continue;
    const auto ids = problem.sequences_of(item);
    plan.oversized.insert(plan.oversized.end(), ids.begin(), ids.end());
  }
  std::sort(plan.oversized.begin(), plan.oversized.end());
}

}  // namespace isochron
