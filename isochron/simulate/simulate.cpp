#include "isochron/simulate/simulate.h"

#include <numeric>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "isochron/simulate/step_player.h"
#include "isochron/simulate/step_totals.h"

namespace isochron {

namespace {

// By rank, then by stage. Each of them was played in its own order, which is kept.
void sort_by_place(std::size_t num_stages, std::size_t num_places,
                   std::vector<TimelineSpan>& spans) {
  const auto place_of = [&](const TimelineSpan& span) {
    return static_cast<std::size_t>(span.rank) * num_stages + static_cast<std::size_t>(span.stage);
  };
  std::vector<std::size_t> next(num_places + 1, 0);  // where the next span of a place goes
  for (const TimelineSpan& span : spans) ++next[place_of(span) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<TimelineSpan> sorted(spans.size());
  for (const TimelineSpan& span : spans) sorted[next[place_of(span)]++] = span;
  spans = std::move(sorted);
}

// Plays a step in the order of its slots; `visit` sees every operation of every group.
template <class Visit>
StepTotals play_totals(StepPlayer& player, Visit visit) {
  constexpr std::string_view where = "simulate";
  const auto num_stages = static_cast<std::size_t>(player.shape().stages);
  std::vector<std::int32_t> order(static_cast<std::size_t>(player.num_slots()));
  std::iota(order.begin(), order.end(), 0);
  StepTotals totals;
  totals.busy_ns.assign(static_cast<std::size_t>(player.num_ranks()) * num_stages, 0);
  totals.step_ns =
      player.play(order, [&](const PipelineOperation& operation, const PlayedGroup& group,
                             Nanoseconds begin_ns, Nanoseconds end_ns) {
        const auto stage = static_cast<std::size_t>(operation.chunk % player.shape().stages);
        const auto first = static_cast<std::size_t>(group.ranks.first) * num_stages + stage;
        const auto end = first + static_cast<std::size_t>(group.ranks.size) * num_stages;
        for (std::size_t place = first; place < end; place += num_stages) {
          totals.busy_ns[place] += end_ns - begin_ns;
        }
        visit(operation, group, begin_ns, end_ns);
      });
  require(totals.step_ns <= max_total_cost, where, "the step takes more than 2^62");
  totals.peak_activation_bytes = player.peak_bytes(order);
  for (std::size_t rank = 0; rank < totals.peak_activation_bytes.size(); ++rank) {
    require(totals.peak_activation_bytes[rank] <= max_total_cost, where,
            "the activations of rank {} take more than 2^62 bytes", rank);
  }
  return totals;
}

}  // namespace

StepTotals total_step(const StepPlan& plan) {
  StepPlayer player(plan);
  return play_totals(player,
                     [](const PipelineOperation&, const PlayedGroup&, Nanoseconds, Nanoseconds) {});
}

Timeline simulate(const StepPlan& plan) {
  StepPlayer player(plan);
  const auto num_stages = static_cast<std::size_t>(player.shape().stages);
  Timeline timeline;
  StepTotals totals =
      play_totals(player, [&](const PipelineOperation& operation, const PlayedGroup& group,
                              Nanoseconds begin_ns, Nanoseconds end_ns) {
        for (std::int64_t i = 0; i < group.ranks.size; ++i) {
          timeline.spans.push_back({.rank = static_cast<std::int32_t>(group.ranks.first + i),
                                    .stage = operation.chunk % player.shape().stages,
                                    .operation = operation,
                                    .group = group.position,
                                    .begin_ns = begin_ns,
                                    .end_ns = end_ns});
        }
      });
  timeline.step_ns = totals.step_ns;
  timeline.busy_ns = std::move(totals.busy_ns);
  timeline.peak_activation_bytes = std::move(totals.peak_activation_bytes);
  sort_by_place(num_stages, timeline.busy_ns.size(), timeline.spans);
  return timeline;
}

}  // namespace isochron
