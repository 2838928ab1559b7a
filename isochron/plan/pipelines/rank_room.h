#pragma once

#include <vector>

#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

// How much a rank that is a pipeline of equal stages, without virtual ones, can do in a step, given
// how long its longest slot is.
class RankRoom {
 public:
  // `fixed` is the least cost of a slot.
  RankRoom(const PipelineShape& shape, Pass pass, double forward_share, double fixed);

  // No more area than this, beside the fixed costs, fits a rank of which some slot takes at least
  // `length` in a training pass, in a step of stages * step / (share of the pass) = time. At most
  // 0 if there is no such rank. But for roundings: lost() nanoseconds of the time.
  [[nodiscard]] double area(double time, double length) const;

  [[nodiscard]] double lost() const { return lost_; }

 private:
  // work * (1 - slope) + longest slot * wait <= time.
  struct Line {
    double slope;
    double wait;
  };
  [[nodiscard]] double area(const Line& line, double time, double length) const;

  double fixed_;
  double ends_ = 0;  // what the first and the last slot cost at least
  double lost_ = 0;
  std::vector<Line> lines_;
};

}  // namespace isochron
