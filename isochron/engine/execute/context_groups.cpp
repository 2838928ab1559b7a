#include "isochron/engine/execute/context_groups.h"

#include "isochron/core/require.h"

namespace isochron {

ContextGroups::ContextGroups(World& world, std::int32_t max_open)
    : world_(world), cache_(max_open) {
  const std::int32_t rank = world.place().rank;
  open_[{rank, 1}] = &world.group(rank, 1);
}

void ContextGroups::open(const StepPlan& plan) {
  const std::int32_t rank = world_.place().rank;
  for (const auto& [kind, ranks] : cache_.advance(plan)) {
    if (rank < ranks.first || rank >= ranks.first + ranks.size) continue;
    const auto first = static_cast<std::int32_t>(ranks.first);
    const auto size = static_cast<std::int32_t>(ranks.size);
    if (kind == GroupChange::Kind::open) {
      open_[{first, size}] = &world_.group(first, size);
    } else {
      world_.close_group(first, size);
      open_.erase({first, size});
    }
  }
}

Communicator& ContextGroups::of(const ContextGroup& group) {
  const auto found = open_.find({group.ranks.first, group.ranks.size});
  require(found != open_.end(), "context groups",
          "the group of {} ranks from {} on is not open on rank {}", group.ranks.size,
          group.ranks.first, world_.place().rank);
  return *found->second;
}

}  // namespace isochron
