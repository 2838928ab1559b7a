#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "isochron/core/units.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// What people ask of a plan, beside its times.
struct PlanFigures {
  std::int64_t num_slots = 0;
  std::int64_t num_placeholders = 0;
  std::map<std::int64_t, std::int64_t> groups_of_size;  // groups with sequences, by their ranks
  Tokens real_tokens = 0;                  // of sequences that run, without padding rows
  Tokens padded_tokens = 0;                // what they and the padding rows take
  Tokens room_tokens = 0;                  // capacity of all groups with sequences
  Tokens largest_microbatch = 0;           // padded tokens on each of its ranks
  std::int64_t peak_activation_bytes = 0;  // of the fullest rank
  std::vector<Nanoseconds> busy_of_rank;   // on all stages

  [[nodiscard]] double token_fill() const;     // padded tokens over the room; 0 without any
  [[nodiscard]] double padding_share() const;  // of the padded tokens; 0 without any
};

// Needs a plan with micro-batches.
[[nodiscard]] PlanFigures figures_of(const StepPlan& plan);

// What a loader without a planner makes of the same question: the batch dealt in order to static
// groups. With a static context those are the same groups, with a dynamic one the smallest that
// hold every sequence. Without micro-batches if there is no such plan; `reason` says why.
[[nodiscard]] StepPlan dealt_plan(const Batch& batch, const Topology& topology,
                                  const CostModel& cost, const PlanOptions& options);

}  // namespace isochron
