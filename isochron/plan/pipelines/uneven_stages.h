#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/problem.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// How long a rank that is a pipeline of unequal stages takes at least, given its number of slots.
// Without virtual stages.
class UnevenStages {
 public:
  // Tells numbers of slots up to `max_slots` apart, at least one.
  UnevenStages(const PipelineShape& shape, Pass pass, double forward_share, std::int32_t max_slots);

  // Whatever is in so many slots or fewer, in whatever order: the step is at least this part of
  // what the slots cost in the pass, but for roundings and without transfers. The more slots, the
  // less; never less than the share of the largest stage.
  [[nodiscard]] double part(std::int32_t num_slots) const;

 private:
  double largest_ = 0;
  std::vector<double> parts_;  // by the number of slots less one
};

[[nodiscard]] UnevenStages uneven_stages_of(const Problem& problem);

}  // namespace isochron
