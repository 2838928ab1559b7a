#pragma once

#include <cstdint>
#include <vector>

#include "isochron/schedule/pipeline_schedule.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// One operation of one rank on one stage. A training step without stages has a forward and a
// backward per slot.
struct TimelineSpan {
  std::int32_t rank = 0;
  std::int32_t stage = 0;
  PipelineOperation operation;
  std::int32_t group = 0;  // position in its slot
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;

  bool operator==(const TimelineSpan&) const = default;
};

// What a plan does, second by second.
struct Timeline {
  Nanoseconds step_ns = 0;           // end of the last span
  std::vector<TimelineSpan> spans;   // by rank, stage, begin
  std::vector<Nanoseconds> busy_ns;  // of each rank and stage, at rank * stages + stage
  std::vector<std::int64_t> peak_activation_bytes;  // of each rank, on its fullest stage

  // Share of the step in which a rank and stage does nothing; 0 if the step takes no time.
  [[nodiscard]] double bubble(std::size_t rank_and_stage) const {
    return step_ns == 0
               ? 0
               : 1 - static_cast<double>(busy_ns[rank_and_stage]) / static_cast<double>(step_ns);
  }
};

// Plays a plan: a group starts when its last member is free at that stage and its input has
// arrived; with Sync::microbatch all ranks also wait for the slowest group of a slot. Costs are
// those of the plan's model; a group with slow ranks runs at the pace of the slowest.
//
// Needs a plan that find_violation() of isochron/check accepts. O(slots * ranks * chunks).
[[nodiscard]] Timeline simulate(const StepPlan& plan);

// What a group costs each of its members in a whole pass over the model: what DESIGN calls the cost
// of a micro-batch on that group, by the exchange it names or else the cheapest, divided by the
// speed of its slowest rank and rounded; the forward share of it if the pass is forward only.
[[nodiscard]] Nanoseconds group_cost(const StepPlan& plan, const ContextGroup& group);

}  // namespace isochron
