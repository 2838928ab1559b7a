#include "apps/isochron/plan_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "isochron/plan/plan.h"
#include "isochron/simulate/simulate.h"

namespace isochron {

namespace {

double ratio(Tokens part, Tokens whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

double PlanFigures::token_fill() const { return ratio(padded_tokens, room_tokens); }

double PlanFigures::padding_share() const {
  return ratio(padded_tokens - real_tokens, padded_tokens);
}

PlanFigures figures_of(const StepPlan& plan) {
  PlanFigures figures;
  figures.num_slots = static_cast<std::int64_t>(plan.microbatches.size());
  const std::vector<Tokens> lengths = all_lengths(plan);
  for (const Slot& slot : plan.microbatches) {
    for (const ContextGroup& group : slot) {
      if (group.sequences.empty()) {
        ++figures.num_placeholders;
        continue;
      }
      ++figures.groups_of_size[group.ranks.size];
      // Where there is more room than sequences could ever fill, its number says nothing.
      constexpr Tokens plenty = Tokens{1} << 40;
      figures.room_tokens += std::min(plan.topology.capacity, plenty) * group.ranks.size;
      Tokens padded = 0;
      for (const SequenceId id : group.sequences) {
        if (id.index() < plan.batch.lengths.size()) figures.real_tokens += lengths[id.index()];
        padded +=
            padded_length(lengths[id.index()], group.ranks.size, plan.options.tensor_parallel);
      }
      figures.padded_tokens += padded;
      figures.largest_microbatch = std::max(figures.largest_microbatch, padded / group.ranks.size);
    }
  }
  figures.peak_activation_bytes =
      *std::max_element(plan.peak_activation_bytes.begin(), plan.peak_activation_bytes.end());
  const Timeline timeline = simulate(plan);
  const auto stages = static_cast<std::size_t>(plan.topology.pipeline.stages);
  figures.busy_of_rank.resize(static_cast<std::size_t>(plan.topology.ranks));
  for (std::size_t i = 0; i < timeline.busy_ns.size(); ++i) {
    figures.busy_of_rank[i / stages] += timeline.busy_ns[i];
  }
  return figures;
}

StepPlan dealt_plan(const Batch& batch, const Topology& topology, const CostModel& cost,
                    const PlanOptions& options) {
  PlanOptions dealt = options;
  dealt.balance = false;
  if (context_mode(options.context).kind == ContextMode::Kind::fixed) {
    return plan_step(batch, topology, cost, dealt);
  }
  dealt.min_context_size = 1;
  dealt.max_context_size = 0;
  dealt.oversize = Oversize::error;
  StepPlan plan;
  for (std::int32_t size = 1; size <= topology.ranks; ++size) {
    if (topology.ranks % size != 0) continue;
    dealt.context = fmt::format("static:{}", size);
    plan = plan_step(batch, topology, cost, dealt);
    if (!plan.microbatches.empty()) break;
  }
  return plan;
}

}  // namespace isochron
