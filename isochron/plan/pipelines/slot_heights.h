#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// How long the slots of a pipeline may be, in the order in which they run, so that it does about as
// much as it can in a step of stages * step / (share of the pass) = time: short ones at both ends
// fill and drain it sooner than equal ones do. `num_slots` is a multiple of pipeline.group.
[[nodiscard]] std::vector<double> slot_heights(const PipelineShape& shape, Pass pass,
                                               double forward_share, std::int32_t num_slots,
                                               double time);

// The same in a time of 1 for one pipeline, each number of slots worked out once.
class SlotHeights {
 public:
  SlotHeights(const PipelineShape& shape, Pass pass, double forward_share)
      : shape_(shape), pass_(pass), forward_share_(forward_share) {}

  [[nodiscard]] const std::vector<double>& of(std::int32_t num_slots);

 private:
  const PipelineShape& shape_;
  Pass pass_;
  double forward_share_;
  std::map<std::int32_t, std::vector<double>> known_;
};

// With virtual stages: rough heights are those of whole blocks, proper ones take a linear program.
enum class PeakCare { rough, proper };

// The same where some slot is `longest` long, which is longer than all of those, and none shorter
// than `shortest`; in training as if stages were equal. Empty if there is no time for it.
[[nodiscard]] std::vector<double> peak_heights(const PipelineShape& shape, Pass pass,
                                               double forward_share, std::int32_t num_slots,
                                               double time, double longest, double shortest,
                                               PeakCare care = PeakCare::proper);

// What it takes about to find proper ones, in nanoseconds, if nobody has asked before.
[[nodiscard]] double time_of_peak(const PipelineShape& shape, Pass pass, std::int32_t num_slots);

}  // namespace isochron
