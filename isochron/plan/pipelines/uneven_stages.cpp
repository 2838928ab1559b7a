// Between any two stages runs a pipeline of its own. Of a path that goes down with slot k from the
// one to the other, on along that, and up again with slot j, every visit counts as much as one of
// the lesser of the two at least, and the visits on the way down as they are. Where w stages follow
// the lower one, it begins its backwards w slots late: what the path misses on the upper one are
// the backwards of d slots, d stages above, that end w slots before k, and the forwards of d slots
// from w behind j on. That is the path of pipeline_bubble.cpp but for w. Every pair of stages
// bounds the step, and the best pair differs with the number of slots: few of them wait for all
// stages, many for the largest.

#include "isochron/plan/pipelines/uneven_stages.h"

#include <algorithm>
#include <tuple>

#include "isochron/core/memo.h"
#include "isochron/plan/pipelines/block_turn.h"
#include "isochron/plan/pipelines/pipeline_bubble.h"

namespace isochron {

UnevenStages::UnevenStages(const PipelineShape& shape, Pass pass, double forward_share,
                           std::int32_t max_slots)
    : largest_(*std::max_element(shape.shares.begin(), shape.shares.end())),
      parts_(static_cast<std::size_t>(max_slots), largest_) {
  const std::size_t stages = shape.shares.size();
  for (std::size_t upper = 0; upper < stages; ++upper) {
    double below = 0;
    for (std::size_t lower = upper + 1; lower < stages; ++lower) {
      below += shape.shares[lower];
      const double lesser = std::min(shape.shares[upper], shape.shares[lower]);
      if (lesser <= 0) continue;
      BlockTurn turn{.gain = below / lesser, .missed = std::vector<double>(stages - 1 - lower, 0)};
      turn.missed.insert(turn.missed.end(), lower - upper, 1);
      const PipelineBubble bubble(turn, pass, forward_share, max_slots);
      for (std::int32_t count = 1; count <= max_slots; ++count) {
        double& part = parts_[static_cast<std::size_t>(count - 1)];
        part = std::max(part, lesser * (1 + bubble.share(count)));
      }
    }
  }
}

double UnevenStages::part(std::int32_t num_slots) const {
  const auto count = static_cast<std::size_t>(std::max(1, num_slots));
  return count > parts_.size() ? largest_ : parts_[count - 1];
}

UnevenStages uneven_stages_of(const Problem& problem) {
  const PipelineShape& shape = problem.topology().pipeline;
  const Pass pass = problem.options().pass;
  const double forward_share = problem.model().forward_share;
  constexpr std::int32_t max_told_apart = 64;  // more slots wait little
  const std::int32_t max_slots = std::clamp(problem.num_items(), 1, max_told_apart);
  // The steps of a run all ask for the same.
  using Key = std::tuple<std::vector<double>, Pass, double, std::int32_t>;
  static Memo<Key, UnevenStages> known(256);
  return known.of({shape.shares, pass, forward_share, max_slots},
                  [&] { return UnevenStages(shape, pass, forward_share, max_slots); });
}

}  // namespace isochron
