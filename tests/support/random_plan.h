#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isochron/step/step_plan.h"

namespace isochron {

// What a random plan is like; whatever is not given is drawn as well.
struct RandomPlanShape {
  std::optional<std::int32_t> ranks = {};  // else 1 to 97
  std::optional<std::string> context = {};
  std::optional<Sync> sync = {};
  std::optional<Counts> counts = {};
  std::optional<Pass> pass = {};
  std::optional<KeepGroups> keep_groups = {};
  std::optional<Oversize> oversize = {};
  std::optional<Short> short_ = {};
  std::optional<std::int32_t> tensor_parallel = {};
  std::optional<std::int32_t> stages = {};
  std::optional<std::int32_t> virtual_ = {};
  std::optional<Tokens> capacity = {};  // a multiple of 24 * tensor_parallel
  std::optional<Tokens> longest = {};   // sequence; else what its ranks hold
  std::optional<CostModel> cost = {};   // one that admits every group of ranks
  std::int32_t num_sequences = 40;      // at most; with Short::error and Short::drop as needed
};

// A valid plan that no planner made: sequences are thrown onto ranks and slots at random, and what
// the counts require is filled up. Its numbers are those of isochron/check. Equal seeds and shapes
// give equal plans.
[[nodiscard]] StepPlan random_plan(std::uint64_t seed, const RandomPlanShape& shape = {});

}  // namespace isochron
