#pragma once

#include <cstdint>
#include <vector>

#include "isochron/plan/pipelines/long_slots.h"
#include "isochron/plan/pipelines/pipeline_bubble.h"
#include "isochron/plan/problem.h"
#include "isochron/step/plan_options.h"
#include "isochron/step/topology.h"

namespace isochron {

struct SlotRange {
  std::int32_t least = 1;
  std::int32_t most = 1;
};

// How much a rank that is a pipeline of equal stages can do in a step, given how long its longest
// slot is and how many slots it has.
class RankRoom {
 public:
  // `fixed` is the least cost of a slot.
  RankRoom(const PipelineShape& shape, Pass pass, double forward_share, double fixed,
           std::int32_t max_slots);

  // No more area than this, beside the fixed costs, fits a rank of which some slot takes at least
  // `length` in a training pass, in a step of stages * (step - transfers()) / (share of the pass) =
  // time. At most 0 if there is no such rank. But for roundings: lost() nanoseconds of the time.
  [[nodiscard]] double area(double time, double length, SlotRange num_slots) const;

  // What a rank waits in all for its number of slots, whatever is in them.
  [[nodiscard]] const PipelineBubble& bubble() const { return bubble_; }

  [[nodiscard]] double lost() const { return lost_; }
  [[nodiscard]] Nanoseconds transfers() const { return transfers_; }  // on the way down and up

 private:
  // work / work_per_time + longest slot * wait <= time - ends; without work if that is 0.
  struct Line {
    double wait = 0;
    double ends = 0;
    double work_per_time = 0;
  };
  void add(const RoomLine& line);

  double fixed_;
  double ends_ = 0;  // what the first and the last slot cost at least
  double lost_ = 0;
  Nanoseconds transfers_ = 0;
  PipelineBubble bubble_;
  std::vector<Line> lines_;
};

// The time of a step of that question, as a RankRoom counts it.
[[nodiscard]] double time_in_room(const Problem& problem, const RankRoom& room, Nanoseconds step);

// What another slot makes stages wait for transfers about, counted likewise. Forwards follow each
// other; in training the last two stages wait for each other's slots, of which two are in flight.
[[nodiscard]] double wait_for_transfers(const Problem& problem);

// For the pipelines of a question and every number of slots that may be worth it.
[[nodiscard]] RankRoom rank_room_of(const Problem& problem);

}  // namespace isochron
