#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/pipelines/block_turn.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// How long a rank that is a pipeline of equal stages waits at least, given its number of slots.
class PipelineBubble {
 public:
  // For up to `max_slots` slots, at least one.
  PipelineBubble(const PipelineShape& shape, Pass pass, double forward_share,
                 std::int32_t max_slots);

  // The same of paths that gain and miss that.
  PipelineBubble(const BlockTurn& turn, Pass pass, double forward_share, std::int32_t max_slots);

  // Whatever is in so many slots or fewer, in whatever order: stages * step is at least
  // 1 + share() times what the slots cost, but for roundings and without transfers. 0 for more than
  // max_slots.
  [[nodiscard]] double share(std::int32_t num_slots) const;

 private:
  void offer(const std::vector<double>& down, const std::vector<double>& up);

  std::int32_t slots_per_block_;
  std::vector<double> share_of_;  // by the number of blocks less one
};

}  // namespace isochron
