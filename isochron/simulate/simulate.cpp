#include "isochron/simulate/simulate.h"

#include <numeric>
#include <utility>
#include <vector>

#include "isochron/core/require.h"
#include "isochron/simulate/step_player.h"

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

}  // namespace

Timeline simulate(const StepPlan& plan) {
  constexpr std::string_view where = "simulate";
  StepPlayer player(plan);
  const auto num_stages = static_cast<std::size_t>(player.shape().stages);
  const auto num_ranks = static_cast<std::size_t>(player.num_ranks());
  std::vector<std::int32_t> order(static_cast<std::size_t>(player.num_slots()));
  std::iota(order.begin(), order.end(), 0);

  Timeline timeline;
  timeline.busy_ns.assign(num_ranks * num_stages, 0);
  timeline.step_ns =
      player.play(order, [&](const PipelineOperation& operation, const PlayedGroup& group,
                             Nanoseconds begin_ns, Nanoseconds end_ns) {
        const std::int32_t stage = operation.chunk % player.shape().stages;
        for (std::int64_t i = 0; i < group.ranks.size; ++i) {
          const auto rank = static_cast<std::int32_t>(group.ranks.first + i);
          const auto place =
              static_cast<std::size_t>(rank) * num_stages + static_cast<std::size_t>(stage);
          timeline.busy_ns[place] += end_ns - begin_ns;
          timeline.spans.push_back({.rank = rank,
                                    .stage = stage,
                                    .operation = operation,
                                    .group = group.position,
                                    .begin_ns = begin_ns,
                                    .end_ns = end_ns});
        }
      });
  require(timeline.step_ns <= max_total_cost, where, "the step takes more than 2^62");

  sort_by_place(num_stages, num_ranks * num_stages, timeline.spans);
  for (std::int32_t rank = 0; rank < player.num_ranks(); ++rank) {
    const std::int64_t bytes = player.peak_bytes(rank, order);
    require(bytes <= max_total_cost, where, "the activations of rank {} take more than 2^62 bytes",
            rank);
    timeline.peak_activation_bytes.push_back(bytes);
  }
  return timeline;
}

}  // namespace isochron
