#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "isochron/engine/execute/context_group_cache.h"
#include "isochron/engine/parallel/communicator.h"
#include "isochron/engine/parallel/world.h"
#include "isochron/step/step_plan.h"

namespace isochron {

// The communicators of the context-parallel groups of this rank. A group of all ranks has one of
// its own beside World::all(), where gradients are under way during the last backward.
class ContextGroups {
 public:
  // The world outlives it. See ContextGroupCache for `max_open`.
  ContextGroups(World& world, std::int32_t max_open);

  // Opens what this rank needs for the step of `plan`, and closes what is too much. Every rank
  // calls it with the same plans in the same order, after all ranks have ended the step before:
  // behind the collective in which they compare the hash of the plan. Nothing is under way in any
  // group.
  void open(const StepPlan& plan);

  // That of a group of the plan that is open, which this rank is in; a group of one rank talks to
  // itself. Valid until the next open(). Throws std::invalid_argument for any other group.
  [[nodiscard]] Communicator& of(const ContextGroup& group);

 private:
  World& world_;
  ContextGroupCache cache_;
  std::map<std::pair<std::int64_t, std::int64_t>, Communicator*> open_;  // by first rank, size
};

}  // namespace isochron
